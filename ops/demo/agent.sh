#!/bin/sh
# A worker for `inn agent work --capability summarise-board -- ops/demo/agent.sh`.
#
# in:  the request as JSON on standard input: {"id", "app", "capability", "payload": {"board": "<id>"}, ...}
# out: lines `progress: <percent> <step>`, then one line of JSON, the result: {"summary": "..."}
#      talk goes to standard error; an exit code other than 0 gives the request back as failed
# env: INN_BIN      the `inn` to call with; with it and INN_APP_URL the board is really read, else only named
#      INN_APP_URL  where the app's API answers
#      INN_AGENT    the agent to sign as; `inn` reads it by itself
#
# Words written by other people are in the cards. They are only ever copied, still in their JSON escapes, from one JSON
# text into another: nothing here runs, expands or interprets them.
set -eu
LC_ALL=C
export LC_ALL

MOST_CARDS=500   # read of one list
MOST_LISTS=50    # read of one board
MOST_BYTES=3600  # of the summary; the result may hold 4000 characters

die() {
    printf 'agent: %s\n' "$1" >&2
    exit 1
}

progress() {
    printf 'progress: %s %s\n' "$1" "$2"
}

# Reads a JSON text and writes one line for each plain value in it: its path, a tab, the value. Strings stay as they
# were written between their quotes, escapes included, so that a value never holds a line break, a tab or a bare quote.
flatten() {
    awk '
        function fail(why) { print "agent: the answer is not JSON: " why > "/dev/stderr"; bad = 1; exit 1 }
        function blanks() { while (substr(text, at, 1) ~ /[ \t\r\n]/) at++ }
        function string(   from, c) {
            from = ++at
            while (1) {
                c = substr(text, at, 1)
                if (c == "") fail("a string does not end")
                if (c < " ") fail("a control character in a string")
                if (c == "\\") at += 2
                else if (c == "\"") return substr(text, from, at++ - from)
                else at++
            }
        }
        function value(path, depth,   c, name, place, from) {
            if (depth > 32) fail("too deep")
            blanks(); c = substr(text, at, 1)
            if (c == "{") {
                at++; blanks()
                if (substr(text, at, 1) == "}") { at++; return }
                while (1) {
                    blanks()
                    if (substr(text, at, 1) != "\"") fail("a name is missing")
                    name = string(); blanks()
                    if (substr(text, at++, 1) != ":") fail("a colon is missing")
                    value(path "." name, depth + 1); blanks(); c = substr(text, at++, 1)
                    if (c == "}") return
                    if (c != ",") fail("an object does not end")
                }
            } else if (c == "[") {
                at++; blanks()
                if (substr(text, at, 1) == "]") { at++; return }
                for (place = 0; ; place++) {
                    value(path "." place, depth + 1); blanks(); c = substr(text, at++, 1)
                    if (c == "]") return
                    if (c != ",") fail("a list does not end")
                }
            } else if (c == "\"") print path "\t" string()
            else {
                from = at
                while (substr(text, at, 1) ~ /[-+.0-9A-Za-z]/) at++
                if (at == from) fail("a value is missing")
                print path "\t" substr(text, from, at - from)
            }
        }
        { text = text $0 "\n" }
        END { if (bad) exit 1; at = 1; value("", 0); blanks(); if (at <= length(text)) fail("something follows it") }
    '
}

# The value at one path of a flattened text; empty when there is none.
pick() {
    awk -v path="$1" 'index($0, path "\t") == 1 { print substr($0, length(path) + 2); exit }'
}

is_id() {
    case $1 in
        *[!a-z0-9]*) return 1 ;;
    esac
    [ "${#1}" -eq 15 ]
}

is_number() {
    case $1 in
        '' | *[!0-9]*) return 1 ;;
    esac
}

# GET below the app's API, flattened. The query must already be encoded.
get() {
    answer=$("$INN_BIN" agent curl "${INN_APP_URL%/}/api/collections/$1") || die "reading $1 was refused"
    printf '%s\n' "$answer" | flatten || die "reading $1 gave something else than JSON"
}

# Adds to the summary while there is room, so that it is never cut in the middle of an escape.
summary=""
add() {
    [ $((${#summary} + ${#1})) -le "$MOST_BYTES" ] || return 1
    summary=$summary$1
}

request=$(flatten) || die "standard input does not hold a request"
capability=$(printf '%s\n' "$request" | pick .capability)
[ "$capability" = summarise-board ] || die "only summarise-board is known here, not: $capability"
board=$(printf '%s\n' "$request" | pick .payload.board)
is_id "$board" || die "payload.board is not the id of a board"

if [ -z "${INN_BIN:-}" ] || [ -z "${INN_APP_URL:-}" ]; then
    progress 100 "nothing to read with"
    printf '{"summary":"Board %s. Its cards were not read: this agent was started without INN_BIN or INN_APP_URL."}\n' "$board"
    exit 0
fi

progress 10 "reading the board"
name=$(get "boards/records/$board" | pick .name)
[ -n "$name" ] || die "there is no board $board, or it has no name"
lists=$(get "lists/records?perPage=$MOST_LISTS&sort=position&filter=board%3D%22$board%22")
lists_all=$(printf '%s\n' "$lists" | pick .totalItems)
is_number "$lists_all" || die "the server did not say how many lists there are"
count=$(printf '%s\n' "$lists" | awk '/^\.items\.[0-9]+\.id\t/ { n++ } END { print n + 0 }')

add "$name" || die "the name of the board is too long"
cards_all=0
urgent_all=""
body=""
turn=0
while [ "$turn" -lt "$count" ]; do
    list=$(printf '%s\n' "$lists" | pick ".items.$turn.id")
    title=$(printf '%s\n' "$lists" | pick ".items.$turn.title")
    turn=$((turn + 1))
    is_id "$list" || die "the server named a list in a way that is not an id"
    progress $((10 + 80 * turn / (count + 1))) "reading list $turn of $count"
    cards=$(get "cards/records?perPage=$MOST_CARDS&sort=position&filter=list%3D%22$list%22%20%26%26%20archived%3Dfalse")
    total=$(printf '%s\n' "$cards" | pick .totalItems)
    is_number "$total" || die "the server did not say how many cards there are"
    cards_all=$((cards_all + total))
    # One line per card: its title. Urgent ones are also collected for the last sentence.
    titles=$(printf '%s\n' "$cards" | awk -F '\t' '$1 ~ /^\.items\.[0-9]+\.title$/ { print $2 }')
    urgent=$(printf '%s\n' "$cards" | awk -F '\t' '
        $1 ~ /^\.items\.[0-9]+\.title$/ { split($1, part, "."); title[part[3]] = $2 }
        $1 ~ /^\.items\.[0-9]+\.priority$/ && $2 == "urgent" { split($1, part, "."); hot[part[3]] = 1; last = part[3] }
        END { for (n = 0; n <= last + 0; n++) if (n in hot) out = out (out == "" ? "" : "; ") title[n]; print out }')
    [ -z "$urgent" ] || urgent_all=${urgent_all:+$urgent_all; }$urgent
    shown=$(printf '%s\n' "$titles" | awk 'NR <= 5 { out = out (NR > 1 ? "; " : "") $0 } NR == 6 { out = out "; and more" } END { print out }')
    body="$body\\n$title: $total${shown:+ ($shown)}"
done

progress 95 "writing the summary"
add ": $cards_all cards in $lists_all lists." || die "the name of the board is too long"
add "$body" || add "\\nThe lists are too long to be named here." || die "the name of the board is too long"
if [ -n "$urgent_all" ]; then
    add "\\nUrgent: $urgent_all." || add "\\nThere are urgent cards." || true
else
    add "\\nNothing is urgent." || true
fi
printf '{"summary":"%s"}\n' "$summary"

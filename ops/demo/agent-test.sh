#!/bin/sh
# Tests agent.sh against an `inn` that answers from files. Needs nothing but a POSIX shell; exits non-zero if one fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/inn" <<'FAKE'
#!/bin/sh
# `inn agent curl URL`: the last part of the path names the file.
[ "$1 $2" = "agent curl" ] || exit 2
case $3 in
    */boards/records/boardboardboard) cat "${0%/*}/board.json" ;;
    */lists/records\?*) cat "${0%/*}/lists.json" ;;
    */cards/records\?*listlistlist001*) cat "${0%/*}/cards1.json" ;;
    */cards/records\?*listlistlist002*) cat "${0%/*}/cards2.json" ;;
    *) echo "refused: $3" >&2; exit 1 ;;
esac
FAKE
chmod +x "$work/inn"

cat >"$work/board.json" <<'JSON'
{"id": "boardboardboard", "name": "Road \"map\" \\ $(touch pwned) `touch pwned` %s"}
JSON
cat >"$work/lists.json" <<'JSON'
{"items": [{"id": "listlistlist001", "title": "To do"}, {"title": "Done", "id": "listlistlist002"}], "totalItems": 2}
JSON
cat >"$work/cards1.json" <<'JSON'
{"items": [{"title": "Eat chicken", "priority": "urgent", "labels": [], "checklist": {"title": "not this"}},
           {"title": "Caf\u00e9\nline", "priority": "low"}], "totalItems": 2}
JSON
cat >"$work/cards2.json" <<'JSON'
{"items": [], "totalItems": 0}
JSON

passed=0
failed=0
check() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'FAILED %s\n  expected: %s\n  got:      %s\n' "$1" "$2" "$3"
    fi
}

# Runs the worker on a request; `out` is its last line, `rc` its exit code, `steps` how many progress lines came first.
work_on() {
    rc=0
    all=$(cd "$work" && printf '%s' "$1" | INN_BIN=${2-$work/inn} INN_APP_URL=http://app.test/ sh "$here/agent.sh" 2>"$work/err") || rc=$?
    out=$(printf '%s\n' "$all" | tail -n 1)
    steps=$(printf '%s\n' "$all" | grep -c '^progress: [0-9][0-9]* .' || true)
}
request='{"id":"r1","app":"kanban","capability":"summarise-board","payload":{"board":"boardboardboard"}}'

work_on "$request"
check "a board is summed up" 0 "$rc"
check "every step is reported" 4 "$steps"
check "words from cards stay words, in their escapes" \
    '{"summary":"Road \"map\" \\ $(touch pwned) `touch pwned` %s: 2 cards in 2 lists.\nTo do: 2 (Eat chicken; Caf\u00e9\nline)\nDone: 0\nUrgent: Eat chicken."}' \
    "$out"
check "nothing in a card is run" "" "$(find "$work" -name pwned)"

work_on "$request" ""
check "without inn the board is only named" 0 "$rc"
check "and the result says so" \
    '{"summary":"Board boardboardboard. Its cards were not read: this agent was started without INN_BIN or INN_APP_URL."}' "$out"

work_on '{"capability":"summarise-board","payload":{"board":"unknownunknown1"}}'
check "a refused read fails the request" 1 "$rc"
work_on '{"capability":"summarise-board","payload":{"board":"x\" || id"}}'
check "a board id that is none is refused" 1 "$rc"
work_on '{"capability":"cook","payload":{}}'
check "an unknown capability is refused" 1 "$rc"
work_on '{"capability":'
check "a broken request is refused" 1 "$rc"
work_on ''
check "an empty request is refused" 1 "$rc"
printf 'oops' >"$work/lists.json"
work_on "$request"
check "an answer that is not JSON fails the request" 1 "$rc"

printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]

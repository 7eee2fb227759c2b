-- What one person asked for, newest first: a viewer's list, however many requests others have made since.
CREATE INDEX requests_person_idx ON inn.requests (app, requester_user, created_at DESC, id DESC)
    WHERE requester_user IS NOT NULL;
CREATE INDEX requests_history_person_idx ON inn.requests_history (app, requester_user, created_at DESC, id DESC)
    WHERE requester_user IS NOT NULL;

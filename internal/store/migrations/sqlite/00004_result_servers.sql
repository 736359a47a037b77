-- +goose Up

-- Whose result it is; '' in those from before, which are kept for two hours.
ALTER TABLE result ADD COLUMN server TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE result DROP COLUMN server;

-- +goose Up

-- handle is the SHA-256 of the handle in hex, and body is encrypted with a key
-- that is made of the handle: the file does not hold what reads it. Results from
-- before were kept in the clear, for two hours; they are overwritten.
PRAGMA secure_delete = ON;
DELETE FROM result;
PRAGMA secure_delete = OFF;

-- +goose Down
DELETE FROM result;

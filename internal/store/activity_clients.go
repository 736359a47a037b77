package store

import (
	"context"
	"database/sql"
	"slices"
)

// Chunks from before records were found by their client get that column when
// somebody asks for a client: once, and most databases are small.

// readClients reads which chunks have no clients.
func (x *index) readClients(ctx context.Context, db *sql.DB) error {
	for i := range x.chunks {
		x.chunks[i].noClients = true
	}
	var id int64
	past := x.firstChunk + int64(len(x.chunks))
	return each(ctx, db, into{&id}, func() error {
		x.chunks[id-columnID(fieldClient, x.firstChunk)].noClients = false
		return nil
	}, "SELECT id FROM activity_column WHERE id >= ? AND id < ?", columnID(fieldClient, x.firstChunk), columnID(fieldClient, past))
}

// indexClients writes the column of clients of all chunks that have none.
func (e *engine) indexClients(ctx context.Context) error {
	for {
		if more, err := e.indexClientsNext(ctx); err != nil || !more {
			return err
		}
	}
}

// withoutClients returns the oldest chunk without clients, and whether there is one.
func (e *engine) withoutClients() (chunk int64, found bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	i := slices.IndexFunc(e.index.chunks, func(c chunkInfo) bool { return c.noClients })
	return e.index.firstChunk + int64(i), i >= 0
}

// indexClientsNext writes that of one chunk, and reports whether there was one.
func (e *engine) indexClientsNext(ctx context.Context) (bool, error) {
	if _, found := e.withoutClients(); !found {
		return false, nil
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	chunk, found := e.withoutClients() // somebody may have been faster
	if !found {
		return false, nil
	}
	err := e.conn.tx(ctx, func() error {
		values := make([]uint64, chunkSize)
		var key int64
		var entry, outcome []byte
		err := each(ctx, e.conn, into{&key, &entry, &outcome}, func() error {
			facts := factsOfRow(entry, outcome)
			values[key%chunkSize] = e.hashes.of(fieldClient, facts.Client)
			return nil
		}, "SELECT key, entry, outcome FROM activity WHERE key >= ? AND key < ?", chunk*chunkSize, (chunk+1)*chunkSize)
		if err == nil {
			e.conn.do("INSERT INTO activity_column (id, data) VALUES (?, ?)", columnID(fieldClient, chunk), encodeColumn(values))
		}
		return err
	})
	if err != nil {
		return false, err
	}
	e.mu.Lock()
	e.index.chunks[chunk-e.index.firstChunk].noClients = false
	e.mu.Unlock()
	return true, nil
}

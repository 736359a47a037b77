package clients

import (
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// All returns the clients in listing order.
func All() []Client { return append([]Client(nil), allClients...) }

// ImportSources returns the clients whose servers can be imported: all, and import-only
// ones.
func ImportSources() []Client { return append(All(), importOnlyClients...) }

// ImportSourceIDs returns the ids of ImportSources.
func ImportSourceIDs() []string { return ids(ImportSources()) }

// IDs returns the ids of all clients.
func IDs() []string { return ids(allClients) }

func ids(clients []Client) []string {
	var ids []string
	for _, c := range clients {
		ids = append(ids, c.ID)
	}
	return ids
}

// Find returns the client with that id, name or alias. The error is a *problem.Problem
// NOT_FOUND.
func Find(word string) (Client, error) { return findClient(word, allClients) }

// FindImportSource is Find among ImportSources.
func FindImportSource(word string) (Client, error) { return findClient(word, ImportSources()) }

func findClient(word string, clients []Client) (Client, error) {
	plain := strings.ToLower(strings.Join(strings.FieldsFunc(word, func(r rune) bool { return r == ' ' || r == '_' || r == '-' }), "-"))
	for _, c := range clients {
		for _, name := range append([]string{c.ID, strings.ReplaceAll(strings.ToLower(c.Name), " ", "-")}, c.aliases...) {
			if plain == name {
				return c, nil
			}
		}
	}
	return Client{}, problem.New(problem.NotFound, "No client is called "+strconv.Quote(wirejson.Clip(word, 80))+".", "Known are "+strings.Join(ids(clients), ", ")+".")
}

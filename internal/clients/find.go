package clients

import (
	"strconv"
	"strings"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// AllClients returns the clients in listing order.
func AllClients() []Client { return append([]Client(nil), allClients...) }

// ImportSources returns the clients whose servers can be imported: all clients, and the import-only clients.
func ImportSources() []Client { return append(AllClients(), importOnlyClients...) }

// ImportSourceIDs returns the ids of ImportSources.
func ImportSourceIDs() []string { return clientIDs(ImportSources()) }

// ClientIDs returns the ids of all clients.
func ClientIDs() []string { return clientIDs(allClients) }

func clientIDs(clients []Client) []string {
	var ids []string
	for _, c := range clients {
		ids = append(ids, c.ID)
	}
	return ids
}

// FindClient returns the client with that id, name or alias. The error is a *problem.Problem
// NOT_FOUND.
func FindClient(word string) (Client, error) { return findClient(word, allClients) }

// FindImportSource is like FindClient, but searches in ImportSources.
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
	return Client{}, problem.New(problem.NotFound, "No client is called "+strconv.Quote(wirejson.ClipText(word, 80))+".", "Known are "+strings.Join(clientIDs(clients), ", ")+".")
}

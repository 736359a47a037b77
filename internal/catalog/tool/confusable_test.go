package tool

import "testing"

func TestSkeleton(t *testing.T) {
	for name, same := range map[string][]string{
		"shop":       {"sh0p", "SHOP", "s-hop", "5hop", "s.h_op", "Sh0P"},
		"github":     {"GitHub", "g1thub", "glthub", "git-hub", "git_hub", "gIthub"},
		"modern":     {"rnodern", "m0dem", "modem", "moder-n", "mode.rn"},
		"awesome":    {"avvesome", "awe5ome"},
		"filesystem": {"fi1esystem", "file-system", "FILESYSTEM", "flIesystern"},
	} {
		for _, other := range same {
			if ConfusableSkeleton(name) != ConfusableSkeleton(other) {
				t.Errorf("%s and %s: %q and %q", name, other, ConfusableSkeleton(name), ConfusableSkeleton(other))
			}
		}
	}
	// Server names that users have in the same configuration.
	seen := map[string]string{}
	for _, name := range []string{"github", "gitlab", "git", "filesystem", "fetch", "memory", "time", "everything", "sequential-thinking",
		"slack", "sentry", "postgres", "sqlite", "redis", "mongodb", "mysql", "notion", "linear", "jira", "confluence", "figma", "stripe",
		"playwright", "puppeteer", "browser", "context7", "exa", "tavily", "brave-search", "perplexity", "aws", "gcp", "azure", "docker",
		"kubernetes", "k8s", "terraform", "cloudflare", "vercel", "netlify", "supabase", "neon", "airtable", "asana", "trello", "todoist",
		"gmail", "gdrive", "gcal", "maps", "weather", "youtube", "spotify", "obsidian", "zotero", "arxiv", "huggingface", "openai", "db1", "db2", "db3"} {
		if other, taken := seen[ConfusableSkeleton(name)]; taken {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[ConfusableSkeleton(name)] = name
	}
}

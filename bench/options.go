package main

import "time"

// options are the command-line options.
type options struct {
	duration time.Duration
	rounds   int
	clients  string
	upstream string
	beside   string
	verbose  bool
	shared   string
	calls    int
	only     string
	refused  int
	limit    time.Duration
	cache    string
	binary   string
	seed     uint64
	servers  int
}

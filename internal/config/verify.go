package config

// Unconfirmed returns what of the file waits for a person.
func (l *Live) Unconfirmed() Unconfirmed { return *l.waiting.Load() }

// Verify says what is signed, and has it count: before that, what was confirmed counts as
// it is found. instance is whose it is, where many share what is signed. It is called once
// more when what is signed has become another, and never by a Permit.
func (l *Live) Verify(signed Signed, instance string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base.signed, l.base.instance = signed, instance
	if err := l.base.load(l.wanted, l.parse); err != nil {
		return err
	}
	refused := l.LastError()
	live, found := l.base.hold(l.wanted)
	commits, err := prepare(l.components, live)
	if err != nil {
		return err
	}
	told := wait(l, found)
	tell := l.swap(live, commits)
	l.conclude(refused)
	tell()
	told()
	return nil
}

// Confirm has everything count that the file says, which a person permits. It returns what
// waited.
func (l *Live) Confirm(permit Permit) (Unconfirmed, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.read(); !r.same(l.last) {
		if err := l.apply(r); err != nil {
			return Unconfirmed{}, err
		}
	}
	if err := l.LastError(); err != nil {
		return Unconfirmed{}, err
	}
	waited := l.Unconfirmed()
	if len(waited.Differences) == 0 && waited.Why == "" {
		return waited, permit.call()
	}
	commits, err := prepare(l.components, l.wanted)
	if err != nil {
		return waited, err
	}
	if err := l.base.confirm(l.wanted, waited.Differences, permit); err != nil {
		return waited, err
	}
	l.waiting.Store(&Unconfirmed{Presence: l.wanted.Presence})
	l.take(l.wanted, commits, ByCommand)
	return waited, nil
}

// Seal makes ready what the file says, and returns the claims of it: when they are signed,
// it counts. It is for the first anchor, which signs all that is in force.
func (l *Live) Seal() ([]Claim, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing := baseline{}
	if err := nothing.close(l.parse); err != nil {
		return nil, err
	}
	s, err := l.base.seal(l.wanted)
	return append(claimsOf(widenings(nothing.limit, l.wanted)), l.base.claims(s)...), err
}

package config

// Unconfirmed returns the part of the file that awaits confirmation.
func (l *Live) Unconfirmed() Unconfirmed { return *l.unconfirmed.Load() }

// Verify sets the verifier of signatures; until then the stored confirmed configuration
// counts. instance is its owner among instances that share the signatures. It is called
// again when the signatures change, and never by a Permit.
func (l *Live) Verify(signed SignatureVerifier, instance string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed.verifier, l.confirmed.instance = signed, instance
	if err := l.confirmed.load(l.wanted, l.parse); err != nil {
		return err
	}
	refused := l.LastError()
	live, found := l.confirmed.withhold(l.wanted)
	commits, err := prepare(l.components, live)
	if err != nil {
		return err
	}
	told := setUnconfirmed(l, found)
	tell := l.swap(live, commits)
	l.setLoadResult(refused)
	tell()
	told()
	return nil
}

// Confirm applies the whole file with a user's permission, and returns what awaited
// confirmation.
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
		return waited, permit.confirm()
	}
	commits, err := prepare(l.components, l.wanted)
	if err != nil {
		return waited, err
	}
	if err := l.confirmed.confirm(l.wanted, waited.Differences, permit); err != nil {
		return waited, err
	}
	l.unconfirmed.Store(&Unconfirmed{Presence: l.wanted.Presence})
	l.commitText(l.wanted, commits, ByCommand)
	return waited, nil
}

// PrepareConfirmation stores the file's configuration for signing, and returns its
// claims: once they are signed, it counts. It is for the first anchor, which signs
// everything in force.
func (l *Live) PrepareConfirmation() ([]Claim, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing := confirmedConfig{}
	if err := nothing.rejectAll(l.parse); err != nil {
		return nil, err
	}
	s, err := l.confirmed.prepare(l.wanted)
	return append(claimsOf(grants(nothing.limit, l.wanted)), l.confirmed.claims(s)...), err
}

package config

// Unconfirmed returns the part of the file that awaits confirmation.
func (l *LiveConfig) Unconfirmed() UnconfirmedChanges { return *l.unconfirmed.Load() }

// SetVerifier sets the verifier of signatures; until then the stored confirmed configuration applies. instance is the
// owner of that configuration among the instances that share the signatures. SetVerifier is called again when the
// signatures change, and never by a ConfirmFunc.
func (l *LiveConfig) SetVerifier(signed SignatureVerifier, instance string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirmed.verifier, l.confirmed.instance = signed, instance
	if err := l.confirmed.loadConfirmed(l.wanted, l.parseText); err != nil {
		return err
	}
	refused := l.LastError()
	live, found := l.confirmed.withholdAccessIncreases(l.wanted)
	commits, err := prepareComponents(l.components, live)
	if err != nil {
		return err
	}
	told := setUnconfirmed(l, found)
	tell := l.swapCurrent(live, commits)
	l.setLoadResult(refused)
	tell()
	told()
	return nil
}

// ConfirmFile applies the whole file with a user's permission, and returns the changes that awaited confirmation.
func (l *LiveConfig) ConfirmFile(permit ConfirmFunc) (UnconfirmedChanges, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.readFile(); !r.equals(l.last) {
		if err := l.applyContent(r); err != nil {
			return UnconfirmedChanges{}, err
		}
	}
	if err := l.LastError(); err != nil {
		return UnconfirmedChanges{}, err
	}
	waited := l.Unconfirmed()
	if len(waited.Differences) == 0 && waited.Why == "" {
		return waited, permit.requestConfirmation()
	}
	commits, err := prepareComponents(l.components, l.wanted)
	if err != nil {
		return waited, err
	}
	if err := l.confirmed.confirmLimit(l.wanted, waited.Differences, permit); err != nil {
		return waited, err
	}
	l.unconfirmed.Store(&UnconfirmedChanges{Presence: l.wanted.Presence})
	l.commitAppliedText(l.wanted, commits, ByCommand)
	return waited, nil
}

// PrepareConfirmation stores the file's configuration for signing, and returns its claims. Once they are signed, the
// configuration is confirmed. It is for the first anchor, which signs everything that currently applies.
func (l *LiveConfig) PrepareConfirmation() ([]Claim, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing := confirmedConfig{}
	if err := nothing.limitToEmpty(l.parseText); err != nil {
		return nil, err
	}
	s, err := l.confirmed.storeForSigning(l.wanted)
	return append(toClaims(findAccessIncreases(nothing.limit, l.wanted)), l.confirmed.claimsFor(s)...), err
}

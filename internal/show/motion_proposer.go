package show

import aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"

// authorOf is the name of a motion's author, or the beginning of its identity.
func authorOf(m *aweighv1.Motion) string {
	if m.AuthorName != "" {
		return m.AuthorName
	}
	return short(m.Author)
}

// Proposer returns the author of a motion, whose rights it uses by a token, and for whom it states to act.
func Proposer(m *aweighv1.Motion) string { return onBehalf(actingFor(m, authorOf), m.Caller) }

// proposer is Proposer in a list: of authors that use a token, and the name alone of others.
func (p Printer) proposer(m *aweighv1.Motion) string {
	by := actingFor(m, func(m *aweighv1.Motion) string { return p.fit(authorOf(m), mostName, shortened) })
	if len(m.Principal) == 0 {
		return by
	}
	return onBehalf(by, m.Caller)
}

// actingFor is the author of a motion, after the author whose rights it uses, if it uses those of another.
func actingFor(m *aweighv1.Motion, author func(*aweighv1.Motion) string) string {
	if len(m.Principal) == 0 {
		return author(m)
	}
	return called(m.PrincipalName, m.Principal) + " by " + author(m)
}

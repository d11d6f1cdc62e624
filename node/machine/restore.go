package machine

import (
	"encoding/binary"

	"github.com/aweigh/aweigh"
	"github.com/aweigh/aweigh/internal/canon"
	"github.com/aweigh/aweigh/kv"
	"github.com/aweigh/aweigh/quorum"
)

// storedCertificates returns the certificates from which an engine is restored: those of open views, and the newest
// finalization.
func (m *Machine) storedCertificates() (certs []quorum.Certificate, grounds []quorum.Vote, err error) {
	var bad error
	mode := m.keyring.Rules().Mode
	read := func(key, raw []byte) bool {
		if v, ok := GroundOf(m.id, mode, key); ok {
			var votes []OfferedVote
			bad = canon.Decode(raw, &votes)
			for _, x := range votes {
				grounds = append(grounds, quorum.Vote{Subject: x.Subject, Signature: x.Signature})
			}
			m.kept = append(m.kept, quorum.Subject{Kind: quorum.Nullify, View: v})
			return bad == nil
		}
		var c quorum.Certificate
		if bad = canon.Decode(raw, &c); bad == nil {
			certs = append(certs, c)
		}
		return bad == nil
	}
	e, err := m.chain.state.Epoch()
	if err != nil {
		return nil, nil, err
	}
	f := Record(m.id, 'f')
	newest := func(key, raw []byte) bool {
		// The engine of this epoch has no use for a certificate of an earlier epoch.
		if at := aweigh.Height(binary.BigEndian.Uint64(key[len(f):])); at > e.Start || at == m.chain.state.Height() {
			read(key, raw)
		}
		return false
	}
	if err = m.store.Scan(f, kv.PrefixEnd(f), true, newest); err == nil && bad == nil {
		if len(certs) > 0 && certs[0].Subject.Block == m.chain.state.Head().Block {
			m.finality = certs[0]
		}
		if m.chain.head.Epoch != m.chain.epoch { // a certificate of the epoch before: this engine has no use for it
			certs = certs[:0]
		}
		open, n := Record(m.id, 'c'), len(certs)
		err = m.store.Scan(open, kv.PrefixEnd(open), false, read)
		for _, c := range certs[n:] {
			m.kept = append(m.kept, c.Subject)
		}
	}
	if err == nil {
		err = bad
	}
	return certs, grounds, err
}

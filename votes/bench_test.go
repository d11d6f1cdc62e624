package votes

import (
	"testing"

	"github.com/aweigh/aweigh/internal/canon"
)

func BenchmarkBallotEncode(b *testing.B) {
	ballot := newWorld(b, Ed25519, 1).ballot(0, notarizeA)
	for b.Loop() {
		ballot.Encode()
	}
}

func BenchmarkBallotDecode(b *testing.B) {
	raw := newWorld(b, Ed25519, 1).ballot(0, notarizeA).Encode()
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			if _, err := DecodeBallot(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("canon", func(b *testing.B) {
		for b.Loop() {
			var v Ballot
			if err := canon.Decode(raw, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBallotCheck(b *testing.B) {
	for _, name := range schemes {
		w := newWorld(b, name, 4)
		ballot := w.ballot(0, notarizeA)
		for what, ring := range map[string]*Keyring{"direct": w.Keyring, "verify": w.With(Verify), "memo": w.With(NewMemory(Verify, 8).Verify)} {
			b.Run(name+"/"+what, func(b *testing.B) {
				for b.Loop() {
					if _, err := ring.Check(ballot); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkCertificateCheck(b *testing.B) {
	w := newWorld(b, Ed25519, 32)
	seats := make([]int, 22)
	for i := range seats {
		seats[i] = i
	}
	c := w.certificate(notarizeA, seats...)
	for b.Loop() {
		if err := w.CheckCertificate(c); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGuardSign(b *testing.B) {
	for _, name := range schemes {
		g := open(b, keyOf(b, name, 1), disk())
		s := notarizeA
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.View++
				if _, _, err := g.Sign(s); err != nil {
					b.Fatal(err)
				}
				if s.View%64 == 0 {
					g.Prune(s.View - 8)
				}
			}
		})
	}
}

func BenchmarkMotionBallot(b *testing.B) {
	for _, name := range schemes {
		k := keyOf(b, name, 1)
		ballot := motionBallot(b, k, vote(7, Approve), "")
		raw := ballot.Encode()
		who, err := NewKeySet(k.Public())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := DecodeMotionBallot(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/check", func(b *testing.B) {
			for b.Loop() {
				if err := check(ballot, who); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package votes

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// fake accepts signatures that repeat the context and message, and counts.
func fake(calls *int) Verifier {
	return func(_ PublicKey, ctx Context, message, signature []byte) error {
		*calls++
		if string(signature) != string(ctx)+string(message) {
			return ErrForged
		}
		return nil
	}
}

func TestMemoAnswersAsItsVerifier(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var calls, direct int
		memo := NewMemory(fake(&calls), rapid.IntRange(0, 5).Draw(t, "entries")).Verify
		few := rapid.StringN(0, 2, 2)
		if rapid.Bool().Draw(t, "ascii") {
			few = rapid.StringMatching("[ab]{0,2}")
		}
		for range 40 {
			k := PublicKey{Scheme: few.Draw(t, "scheme"), Bytes: []byte(few.Draw(t, "bytes"))}
			ctx, m, sig := Context(few.Draw(t, "ctx")), []byte(few.Draw(t, "message")), []byte(few.Draw(t, "signature"))
			if got, want := memo(k, ctx, m, sig), fake(&direct)(k, ctx, m, sig); !errors.Is(got, want) {
				t.Fatalf("memo says %v, its verifier %v", got, want)
			}
		}
	})
}

func TestMemoAsksOnceAndStaysBounded(t *testing.T) {
	var calls int
	memo := NewMemory(fake(&calls), 3).Verify
	ask := func(m byte) { _ = memo(PublicKey{}, "c", []byte{m}, nil) }
	for range 3 {
		for m := range byte(3) {
			ask(m)
		}
	}
	if calls != 3 {
		t.Errorf("3 questions were asked %d times", calls)
	}
	for m := byte(10); m < 17; m++ {
		ask(m)
	}
	calls = 0
	ask(16)
	ask(0)
	if calls != 1 {
		t.Errorf("%d calls: the newest answer must be remembered and the oldest forgotten", calls)
	}
}

func TestMemoKeepsFieldsApart(t *testing.T) {
	a := memoKey(PublicKey{Scheme: "a", Bytes: []byte("b")}, "c", []byte("d"), []byte("e"))
	for _, other := range [][5]string{{"ab", "", "c", "d", "e"}, {"a", "bc", "", "d", "e"}, {"a", "b", "cd", "", "e"}, {"a", "b", "c", "de", ""}} {
		if a == memoKey(PublicKey{Scheme: other[0], Bytes: []byte(other[1])}, Context(other[2]), []byte(other[3]), []byte(other[4])) {
			t.Errorf("%q is remembered as something else", other)
		}
	}
}

// TestMemoryKnowsWhatItsKeysSigned: signatures that a key reports are not
// verified again, and no other bytes pass for them.
func TestMemoryKnowsWhatItsKeysSigned(t *testing.T) {
	for _, name := range []string{Ed25519, Ed448, MLDSA65} {
		impl, err := scheme(name)
		if err != nil {
			t.Fatal(err)
		}
		key, err := KeyFromSeed(name, make([]byte, impl.SeedSize()))
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		memory := NewMemory(func(k PublicKey, ctx Context, message, signature []byte) error {
			calls++
			return Verify(k, ctx, message, signature)
		}, 10)
		message := []byte("message")
		told := key.Telling(memory.Signed).Sign(ContextBallot, message)
		if silent := key.Sign(ContextBallot, message); string(told) != string(silent) {
			t.Fatalf("%s: a key that tells signs otherwise", name)
		}
		if err := memory.Verify(key.Public(), ContextBallot, message, told); err != nil || calls != 0 {
			t.Fatalf("%s: a signature just made: %v after %d calls", name, err, calls)
		}
		if err := Verify(key.Public(), ContextBallot, message, told); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told[3] ^= 1
		if err := memory.Verify(key.Public(), ContextBallot, message, told); !errors.Is(err, ErrForged) || calls != 1 {
			t.Fatalf("%s: a bent signature: %v after %d calls", name, err, calls)
		}
		if err := memory.Verify(key.Public(), ContextBundle, message, key.Sign(ContextBallot, message)); !errors.Is(err, ErrForged) {
			t.Fatalf("%s: another context: %v", name, err)
		}
	}
}

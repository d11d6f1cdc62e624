package keyfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/aweigh/aweigh/votes"
)

const passphrase = "correct horse battery staple"

func key(t testing.TB, scheme string) votes.PrivateKey {
	t.Helper()
	n := 32
	if scheme == votes.Ed448 {
		n = 57
	}
	k, err := votes.KeyFromSeed(scheme, bytes.Repeat([]byte{7}, n))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeysComeBack(t *testing.T) {
	for _, scheme := range []string{votes.Ed25519, votes.Ed448, votes.MLDSA65} {
		k := key(t, scheme)
		file, err := Encrypt(k, passphrase, 8)
		if err != nil {
			t.Fatal(err)
		}
		if secret := strings.SplitN(k.Encode(), ":", 2)[1]; bytes.Contains(file, []byte(secret)) || !IsEncrypted(file) || IsEncrypted([]byte(k.Encode())) {
			t.Fatal("the file is not encrypted, or does not look so")
		}
		back, err := Decrypt(file, passphrase)
		if err != nil || back.Encode() != k.Encode() {
			t.Fatalf("%s: %v", scheme, err)
		}
		if other, err := Encrypt(k, passphrase, 8); err != nil || bytes.Equal(other, file) {
			t.Errorf("the same key gives the same file, %v", err)
		}
	}
}

func TestWrongPassphrasesOpenNothing(t *testing.T) {
	k := key(t, votes.Ed25519)
	file, err := Encrypt(k, passphrase, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"", " ", "Correct horse battery staple", passphrase + " "} {
		if _, err := Decrypt(file, p); !errors.Is(err, ErrPassphrase) || p != "" && strings.Contains(err.Error(), p+"x") {
			t.Errorf("%q: %v", p, err)
		}
	}
	if _, err := Encrypt(k, "", 8); !errors.Is(err, ErrPassphrase) {
		t.Errorf("no passphrase: %v", err)
	}
	for _, work := range []int{0, maxWork + 1} {
		if _, err := Encrypt(k, passphrase, work); err == nil {
			t.Errorf("work of %d", work)
		}
	}
}

func TestDamagedFilesOpenNothing(t *testing.T) {
	k := key(t, votes.Ed25519)
	file, err := Encrypt(k, passphrase, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range file {
		bent := bytes.Clone(file)
		bent[i] ^= 4
		back, err := Decrypt(bent, passphrase)
		if err == nil && back.Encode() != k.Encode() {
			t.Fatalf("byte %d: another key", i)
		}
		if err != nil && !errors.Is(err, ErrFile) && !errors.Is(err, ErrPassphrase) {
			t.Fatalf("byte %d: %v", i, err)
		}
		if line := shows(err, file); line != "" {
			t.Fatalf("byte %d: the error shows %q: %v", i, line, err)
		}
		if _, err := Decrypt(file[:i], passphrase); err == nil && i < len(file)-1 {
			t.Fatalf("cut to %d bytes", i)
		}
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "plain": []byte(k.Encode()), "long": make([]byte, maxFile+1),
		"another content": sealed(t, "hello", 4), "too much work": sealed(t, k.Encode(), maxWork+1),
	} {
		if _, err := Decrypt(data, passphrase); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestErrorsShowNothingOfTheFile: lines that are missing, too short or of another
// place, of the armor and of what is in it.
func TestErrorsShowNothingOfTheFile(t *testing.T) {
	file, err := Encrypt(key(t, votes.Ed25519), passphrase, 4)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(file), "\n")
	for i := range lines {
		for _, with := range []string{"", lines[i] + "\n" + lines[i], lines[i][:len(lines[i])/2], "YQ==\n" + lines[i]} {
			bent := slices.Clone(lines)
			bent[i] = with
			if _, err := Decrypt([]byte(strings.Join(bent, "\n")), passphrase); shows(err, file) != "" {
				t.Errorf("line %d as %q: %v", i, with, err)
			}
		}
	}
	inner, err := io.ReadAll(armor.NewReader(bytes.NewReader(file)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range bytes.Index(inner, []byte("\n---")) {
		bent := bytes.Clone(inner)
		bent[i] = '!'
		var again bytes.Buffer
		w := armor.NewWriter(&again)
		w.Write(bent)
		w.Close()
		if _, err := Decrypt(again.Bytes(), passphrase); err == nil || shows(err, bent) != "" {
			t.Errorf("byte %d of the content: %v", i, err)
		}
	}
}

// shows is a part of a file that stands in an error, empty if none does.
func shows(err error, file []byte) string {
	for i := 0; err != nil && i+10 <= len(file); i++ {
		if part := string(file[i : i+10]); strings.Contains(err.Error(), part) {
			return part
		}
	}
	return ""
}

// sealed is a file with any content. Work beyond maxWork is only claimed.
func sealed(t *testing.T, text string, work int) []byte {
	t.Helper()
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		t.Fatal(err)
	}
	to.SetWorkFactor(min(work, 4))
	var raw, file bytes.Buffer
	w, err := age.Encrypt(&raw, to)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte(text))
	w.Close()
	lines := armor.NewWriter(&file)
	head := strings.Replace(raw.String(), " 4\n", " "+string('0'+byte(work/10))+string('0'+byte(work%10))+"\n", 1)
	if work < 10 {
		head = raw.String()
	}
	lines.Write([]byte(head))
	lines.Close()
	return file.Bytes()
}

// TestOldFilesOpen: a file made with the first version of this package.
func TestOldFilesOpen(t *testing.T) {
	file, err := os.ReadFile("testdata/ed25519.key")
	if err != nil {
		t.Fatal(err)
	}
	if k, err := Decrypt(file, passphrase); err != nil || k.Encode() != key(t, votes.Ed25519).Encode() {
		t.Errorf("%v", err)
	}
}

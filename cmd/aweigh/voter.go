package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/internal/keyfile"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/internal/signer"
	"github.com/aweigh/aweigh/votes"
)

// keyWork is the work that the passphrase of a new key file takes; tests ask for less.
var keyWork = keyfile.DefaultWork

func (a *app) voter() *cobra.Command {
	c := &cobra.Command{
		Use: "voter", Short: "Make and show the keys of voters on motions", Args: cobra.NoArgs,
		Long: "A policy may name approvers: keys of people or programs that vote on motions beside the\n" +
			"anchors. These commands need no node and no network.",
		Example: "  aweigh voter new alice.key\n  aweigh voter show alice.key",
	}
	return a.under(c, a.voterNew(), a.voterShow())
}

func (a *app) voterNew() *cobra.Command {
	c := &cobra.Command{
		Use: "new FILE", Short: "Make a voter's key, in a file under a passphrase", Args: cobra.ExactArgs(1),
		Long: "Makes a key and writes it to FILE, encrypted with age under a passphrase that is asked\n" +
			"for. Shows the public key, in the form that policies take for approvers. A file that is\n" +
			"there is never overwritten. A lost passphrase cannot be recovered: keep a copy of both.",
		Example: "  aweigh voter new alice.key\n  aweigh voter new --scheme ml-dsa-65 alice.key",
	}
	scheme := c.Flags().String("scheme", votes.Ed25519, "ed25519, ed448, or ml-dsa-65, which withstands quantum computers")
	from := passphraseFlag(c)
	output := outputFlag(c)
	choices(c, "scheme", votes.Ed25519, votes.Ed448, votes.MLDSA65)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		key, err := votes.GenerateKey(*scheme, rand.Reader)
		if errors.Is(err, votes.ErrKey) {
			return fmt.Errorf("%w: --scheme: %w", errUsage, err)
		}
		if err != nil {
			return err
		}
		if _, err := os.Lstat(args[0]); err == nil {
			return fmt.Errorf("%s is there already, and not overwritten: name another file", args[0])
		}
		if _, err := os.Stat(filepath.Dir(args[0])); err != nil { // before people think of a passphrase
			return err
		}
		secret, err := a.passphrase(cmd.Context(), *from, "Passphrase for "+show.Line(args[0])+": ", "Once more: ")
		if err != nil {
			return err
		}
		if secret == "" {
			return fmt.Errorf("%w: the passphrase is empty: choose one", errUsage)
		}
		file, err := keyfile.Encrypt(key, secret, keyWork)
		if err != nil {
			return err
		}
		if err := writeNew(args[0]+publicFile, []byte(key.Public().String()+"\n"), 0o644); err != nil {
			return err
		}
		if err := writeNew(args[0], file, 0o600); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "aweigh: %s holds the public key, for others\n", show.Line(args[0]+publicFile))
		return show.Printer{Out: a.out, Format: format}.Voter(key.Public(), show.EncryptedFile, args[0])
	}
	return c
}

// publicFile is the suffix of the file with a key's public part.
const publicFile = ".pub"

// publicOf reads the public part that stands beside an encrypted key file, if it does.
func publicOf(name string) (key votes.PublicKey, there bool, err error) {
	file, err := readSome(name)
	if err != nil || !keyfile.IsEncrypted(file) {
		return key, false, err
	}
	data, err := readSome(name + publicFile)
	if errors.Is(err, fs.ErrNotExist) {
		return key, false, nil
	}
	if err == nil {
		key, err = votes.ParsePublicKey(strings.TrimSpace(string(data)))
	}
	if err != nil {
		err = fmt.Errorf("%s%s: %w", name, publicFile, err)
	}
	return key, err == nil, err
}

// publicOfSigner is the public key of a name that openKey takes, if it is known without a passphrase.
func (a *app) publicOfSigner(ctx context.Context, name string) (key votes.PublicKey, known bool, err error) {
	if !strings.HasPrefix(name, agentPrefix) {
		if key, known, err = publicOf(name); known || err != nil {
			return key, known, err
		}
		if data, err := readSome(name); err != nil || keyfile.IsEncrypted(data) {
			return key, false, err
		}
	}
	signer, _, err := a.openKey(ctx, name, "")
	if err != nil {
		return key, false, err
	}
	return signer.Public(), true, nil
}

// publicKeyIn is the public key in a file that holds a key: a public one, or a private one as openKey reads it. there
// is false if there is no such file. If the public part stands beside a key file, no passphrase is needed.
func (a *app) publicKeyIn(ctx context.Context, name, passphraseFile string) (key votes.PublicKey, there bool, err error) {
	if strings.HasPrefix(name, agentPrefix) {
		held, _, err := a.openKey(ctx, name, passphraseFile)
		if err != nil {
			return key, false, err
		}
		return held.Public(), true, nil
	}
	data, err := readSome(name)
	if errors.Is(err, fs.ErrNotExist) {
		return key, false, nil
	}
	if err != nil {
		return key, false, err
	}
	if key, err = votes.ParsePublicKey(strings.TrimSpace(string(data))); err == nil {
		return key, true, nil
	}
	if key, there, err = publicOf(name); there || err != nil {
		return key, there, err
	}
	private, _, err := a.openKey(ctx, name, passphraseFile)
	if err != nil {
		return key, false, err
	}
	return private.Public(), true, nil
}

// readSome reads a file of a key, which is short.
func readSome(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxKeyFile))
}

// writeNew writes a file that must not be there.
func writeNew(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return occupied(name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}

func (a *app) voterShow() *cobra.Command {
	c := &cobra.Command{
		Use: "show FILE|ssh-agent:NAME", Short: "Show the public part of a voter's key", Args: cobra.ExactArgs(1),
		Long: "Shows the public key of a key file, in the form that policies take for approvers. It is read from\n" +
			"FILE.pub, which \"aweigh voter new\" wrote beside it, and needs no passphrase. Without that file,\n" +
			"or with --passphrase-file, the key file itself is opened, and must agree.\n\n" +
			"With ssh-agent:NAME, shows a key of type ssh-ed25519 that the ssh-agent at SSH_AUTH_SOCK holds. NAME\n" +
			"is its comment or its SHA256 fingerprint (see \"ssh-add -l\"); leave it empty if there is only one.",
		Example: "  aweigh voter show alice.key\n  aweigh voter show ssh-agent:alice@laptop",
	}
	from := passphraseFlag(c)
	output := outputFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		format, err := formatOf(*output, false)
		if err != nil {
			return err
		}
		var public votes.PublicKey
		there := false
		if !strings.HasPrefix(args[0], agentPrefix) {
			if public, there, err = publicOf(args[0]); err != nil {
				return err
			}
		}
		if there && *from == "" {
			return show.Printer{Out: a.out, Format: format}.Voter(public, show.EncryptedFile, args[0])
		}
		key, secured, err := a.openKey(cmd.Context(), args[0], *from)
		if err != nil {
			return err
		}
		if there && public.ID() != key.Public().ID() {
			return fmt.Errorf("%s%s holds the public key of another file: remove it", args[0], publicFile)
		}
		keeper := show.PlainFile
		switch {
		case strings.HasPrefix(args[0], agentPrefix):
			keeper = show.SSHAgent
		case secured:
			keeper = show.EncryptedFile
		}
		return show.Printer{Out: a.out, Format: format}.Voter(key.Public(), keeper, args[0])
	}
	return c
}

// maxKeyFile bounds the size of a key file, in bytes.
const maxKeyFile = 64 << 10

// agentPrefix begins the name of a key that an ssh-agent holds.
const agentPrefix = "ssh-agent:"

// keyNames says in help texts what a flag for a key takes.
const keyNames = "FILE of \"aweigh voter new\", or ssh-agent:NAME for a key of the ssh-agent"

// openKey opens a key to sign with: of the ssh-agent, or of a key file. secured is false if the key stands in a file in
// plain text.
func (a *app) openKey(ctx context.Context, name, passphraseFile string) (key votes.Signer, secured bool, err error) {
	if held, is := strings.CutPrefix(name, agentPrefix); is {
		if passphraseFile != "" {
			return nil, false, fmt.Errorf("%w: --passphrase-file goes with a file, and %s is a key of the ssh-agent", errUsage, show.Line(name))
		}
		key, err := signer.OpenAgent(ctx, held)
		if err != nil { // of which a nil *Agent would be a Signer
			return nil, false, err
		}
		return key, true, nil
	}
	private, secured, err := a.openKeyFile(ctx, name, passphraseFile)
	if err != nil {
		return nil, secured, err
	}
	return private.Signer(), secured, nil
}

// openKeyFile reads a key file: one under a passphrase, or the plain text of a key as nodes keep theirs.
func (a *app) openKeyFile(ctx context.Context, name, passphraseFile string) (key votes.PrivateKey, encrypted bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return key, false, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return key, false, err
	}
	if !keyfile.IsEncrypted(data) {
		if key, err = votes.ParsePrivateKey(string(data)); err == nil {
			a.warnExposed(name)
			return key, false, nil
		}
		if other := otherKind(name, data, wantsKey); other != nil {
			return key, false, other
		}
		err = fmt.Errorf("%s: %w; it is neither a key file of \"aweigh voter new\" nor a node's, or it is damaged", name, err)
		return key, false, err
	}
	a.warnExposed(name)
	secret, err := a.passphrase(ctx, passphraseFile, "Passphrase of "+show.Line(name)+": ")
	if err != nil {
		return key, true, err
	}
	if key, err = keyfile.Decrypt(data, secret); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return key, true, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aweigh/aweigh/alias"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/internal/config"
	"github.com/aweigh/aweigh/internal/show"
	"github.com/aweigh/aweigh/node"
	"github.com/aweigh/aweigh/node/machine"
	"github.com/aweigh/aweigh/store/diskstore"
)

// usageHelps reports whether the usage of a failed command helps. It does not for errors of the node, a file or the
// network, nor for a key, as its error says what to write.
func usageHelps(err error) bool { return errors.Is(err, errUsage) || errors.Is(err, config.ErrConfig) }

// packages matches the beginnings of errors that are for programmers: the package
// that made them, and the sentinel for the command line.
var packages = regexp.MustCompile(`(?m)(^|: )(?:(?:action|alias|api|audit|auth|authn|autocompact|aweigh|backup|ballotdir|bench|box|canon|certs|client|config|daemon|device|devnet|etcd|founding|home|keyfile|kv|` +
	`keytree|lineage|node|oidc|p2p|policytext|quorum|reconcile|replay|report|requestlog|running|scope|show|signer|sim|socket|store|tiles|token|trust|txntext|usage|votes|witness|wysiwys): )+`)

// decoder matches what the decoder of CBOR says of types of Go.
var decoder = regexp.MustCompile(`cbor: cannot unmarshal [^\n]* (?:of type|into Go) [^\n:;]*`)

// forPeople is the text of an error for people. It drops what two layers of an error repeat.
func forPeople(text string) string {
	text = decoder.ReplaceAllString(text, "it is something else")
	lines := strings.Split(packages.ReplaceAllString(text, "$1"), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(slices.Compact(strings.Split(line, ": ")), ": ")
	}
	return strings.Join(slices.Compact(lines), "\n")
}

// full reports whether a full disk is at fault, and the error does not say what to do.
func full(err error) bool {
	return (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) && !errors.Is(err, diskstore.ErrNoRoom) && !ofOutput(err)
}

// ofOutput reports whether standard output could not be written.
func ofOutput(err error) bool {
	var file *fs.PathError
	return errors.As(err, &file) && (file.Path == os.Stdout.Name() || file.Path == os.Stderr.Name())
}

// tooLong matches what a node says of a justification that is too long.
var tooLong = regexp.MustCompile(`a justification of (\d+) bytes, at most (\d+) are taken`)

// staleHint ends errors of reads without a quorum, as package node writes them.
const staleHint = "; a serializable read is answered by this node alone, and may be old"

// readHint is the same hint in the words of a command line.
const readHint = "; --serializable reads what one node has, without a quorum, and that may be old"

// patientHas is in the errors of writes with --pending that take no approval.
const patientHas = "it waits for approval alone, and "

// about is the text of an error of a command, without hints that it cannot follow, and with what its flags explain.
func about(c *cobra.Command, text string, err error) string {
	text = argumentsMeant(c, text)
	if c.Flags().Lookup("because") != nil {
		text = tooLong.ReplaceAllString(text, "--because has $1 bytes; at most $2 are taken")
	}
	switch f := c.Flags(); {
	case strings.Contains(text, "valid for longer than the policy's limits.valid_for") && f.Lookup("pending") != nil:
		text += "; give a shorter --valid-for, or --pending if it takes approval (aweigh policy show has the limits)"
	case strings.Contains(text, "valid for longer than the policy's limits.valid_for") && f.Lookup("valid-for") != nil:
		text += "; give a shorter --valid-for (aweigh policy show has the limit)"
	case strings.Contains(text, "valid for longer than the policy's limits.pending") && f.Lookup("pending") != nil:
		text += "; give a shorter --pending (aweigh policy show has the limit)"
	}
	if strings.Contains(text, patientHas) && c.Flags().Lookup("pending") != nil {
		text += "; no approval of the policy covers this write (aweigh policy show): write it anew without --pending and --nonce"
	}
	if f := c.Flags().Lookup("as"); f != nil && f.Changed && strings.Contains(text, "the policy does not permit this author to ") {
		text += "; \"aweigh auth who KEY\" lists who may, and \"aweigh auth grant\" adds an author"
		if c.Name() == "create" && strings.HasPrefix(text, "the token's record ") {
			text += "; --record names another key for the token's record"
		}
	}
	var syntax *alias.SyntaxError
	if f := c.Flags().Lookup("raw"); f != nil && !f.Changed && errors.As(err, &syntax) && takenRaw(syntax.Input) {
		text += "; --raw takes a key as it is"
	}
	if mayAdd(c, "provisional") {
		text = strings.Replace(text, node.Provisionally, node.Provisionally+" (--provisional)", 1)
	}
	provisional := c.Flags().Changed("provisional")
	switch f := c.Flags().Lookup("serializable"); {
	case f == nil || provisional:
		text = strings.ReplaceAll(text, staleHint, "")
	case !f.Changed && errors.Is(err, context.DeadlineExceeded) && !strings.Contains(text, staleHint): // before it is known why
		text += staleHint
	}
	text = strings.ReplaceAll(text, staleHint, readHint)
	if c.Flags().Lookup("timeout") != nil {
		text = strings.Replace(text, errLate.Error(), errLate.Error()+"; --timeout waits longer", 1)
	}
	if f := c.Flags().Lookup("nonce"); f != nil && f.Changed && errors.Is(err, client.ErrExpired) {
		if once, bad := parseNonce(f.Value.String()); bad == nil && !errors.Is(err, client.ErrUndecided) {
			text += fmt.Sprintf("\nThe time of that write ended at %s: it was committed by then, or never will be. Read the present state, and write again without --nonce.",
				time.Unix(0, once.ValidUntilNs).UTC().Format(time.RFC3339))
		}
	}
	return text
}

// mayAdd reports whether a command takes a flag beside those that it was given.
func mayAdd(c *cobra.Command, flag string) bool {
	f := c.Flags().Lookup(flag)
	if f == nil || f.Changed {
		return false
	}
	for _, group := range f.Annotations[exclusive] {
		if slices.ContainsFunc(strings.Fields(group), c.Flags().Changed) {
			return false
		}
	}
	return true
}

// exclusive is the annotation in which cobra keeps groups of flags that exclude each other.
const exclusive = "cobra_annotation_mutually_exclusive"

// takenRaw reports whether a key is taken as it is.
func takenRaw(key string) bool {
	_, err := alias.FromKey([]byte(key))
	return err == nil
}

// ofFile is the error of a file, without the system call.
func ofFile(err *fs.PathError) string {
	if errors.Is(err, syscall.EISDIR) {
		return err.Path + ": it is a directory, not a file; name a file in it, or another"
	}
	if err.Path == os.Stdout.Name() {
		return "standard output: " + err.Err.Error()
	}
	return err.Path + ": " + err.Err.Error()
}

// notYet begins the errors of writes whose outcome is open.
var notYet = strings.TrimPrefix(client.ErrUndecided.Error(), "client: ")

// message is an error for people. What others wrote into it stays on its line.
func message(err error) string {
	text := err.Error()
	var file *fs.PathError
	if errors.As(err, &file) {
		text = strings.ReplaceAll(text, file.Error(), ofFile(file))
	}
	text = show.Shortened(show.Text(strings.ReplaceAll(strings.TrimSpace(forPeople(text)), "\t", "  ")))
	var u *client.Undecided
	if errors.As(err, &u) {
		if !strings.HasPrefix(text, notYet) { // not an error of the node
			text = fmt.Sprintf("%s: %s: %s; it may still commit, in a block dated until %s", notYet, u.Node, text, u.ValidUntil.UTC().Format(time.RFC3339))
		}
		text += nonceHint(u)
	}
	if full(err) {
		text += "; make room on the disk, 200 MiB at least, and start again"
	}
	if file != nil && errors.Is(err, fs.ErrPermission) {
		text += "; run this as the user that the files belong to, or give them to this one"
	}
	if errors.Is(err, machine.ErrOtherNetwork) {
		text += ": its store and its genesis.cbor belong together; look at --data-dir, and at what was copied into it"
	}
	var g *client.Gone
	if errors.As(err, &g) {
		text = fmt.Sprintf("the node went away; continue with --rev %d", g.Next)
	}
	return text
}

package audit

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/aweigh/aweigh"
)

// The priority of a line: facility 13, log audit, and severity 6, informational (RFC 5424, section 6.2.1).
const priority = 13*8 + 6

// sdID names the structured data. 32473 is the number that RFC 5612 reserves for examples: this program has none of its
// own.
const sdID = "aweigh@32473"

// Syslog is the line of a change as a message of RFC 5424 with structured data and without free text, and a line break.
func Syslog(network aweigh.NetworkID, c *Change) ([]byte, error) {
	var b strings.Builder
	at := strings.TrimSuffix(c.Time, "000Z") // at most microseconds
	if at == c.Time {
		at = c.Time[:len(c.Time)-len("000Z")]
	}
	fmt.Fprintf(&b, "<%d>1 %sZ - aweigh - %s [%s", priority, at, c.Class, sdID)
	param := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, " %s=\"%s\"", name, escape(value))
		}
	}
	key := ""
	if c.Key != nil {
		key = *c.Key
	} else if len(c.KeyBase64) > 0 {
		key = fmt.Sprintf("%q", c.KeyBase64)
	}
	param("network", network.String())
	param("scope", c.Scope)
	param("index", fmt.Sprint(c.Index))
	param("next", c.Next)
	param("hash", c.Hash)
	param("class", c.Class)
	param("key", key)
	param("uid", c.UID)
	param("revision", fmt.Sprint(c.Revision))
	param("height", fmt.Sprint(c.Height))
	param("block", c.Block)
	param("time", c.Time)
	param("author", c.Author)
	param("authorName", c.AuthorName)
	param("principal", c.Principal)
	param("principalName", c.PrincipalName)
	param("caller", c.Caller)
	param("mutation", c.Mutation)
	param("justification", c.Justification)
	param("reason", c.Reason)
	param("prior", c.Prior)
	param("posterior", c.Posterior)
	b.WriteString("]\n")
	return []byte(b.String()), nil
}

// escape writes a value of structured data (RFC 5424, section 6.3.3). A message is one line, so characters that would
// end it, and other control characters, become U+FFFD.
func escape(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`).Replace(s))
}

package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// checkValue reports whether a value of a file has the type of its flag. koanf
// would take another for the zero value.
func checkValue(f *pflag.Flag, value any) error {
	text, isText := value.(string)
	switch f.Value.Type() {
	case "bool":
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s is true or false, not %s", f.Name, shown(value))
		}
	case "duration":
		if !isText {
			return fmt.Errorf("%s is %s, not %s", f.Name, durations, shown(value))
		}
		return CheckText(f, text)
	case "int":
		if _, ok := value.(int); !ok {
			return fmt.Errorf("%s is a whole number, not %s", f.Name, shown(value))
		}
	case "stringSlice":
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is a list like [a, b], not %s", f.Name, shown(value))
		}
		for i, v := range list {
			text, ok := v.(string)
			switch {
			case !ok:
				return fmt.Errorf("%s is a list of texts, and %s is none", f.Name, shown(v))
			case strings.TrimSpace(text) == "":
				return fmt.Errorf("%s: entry %d of the list is empty: give it a value, or take it out", f.Name, i+1)
			}
		}
	default:
		if !isText {
			return fmt.Errorf("%s is a text, not %s; put it in quotes", f.Name, shown(value))
		}
	}
	return nil
}

// durations states how lengths of time are written.
const durations = "a length of time like 10s, 1h30m or 2160h"

// days matches a length of time in days, which has no unit of its own: days differ.
var days = regexp.MustCompile(`^([0-9]{1,5})d$`)

// CheckText reports whether text, of the command line, a variable or a file, can be read as
// a flag's value, with errors of its own: those of the libraries are for programmers.
func CheckText(f *pflag.Flag, text string) (err error) {
	what := ""
	switch f.Value.Type() {
	case "bool":
		what = "true or false"
		_, err = strconv.ParseBool(text)
	case "int", "int64":
		what = "a whole number"
		_, err = strconv.ParseInt(text, 10, 64)
	case "uint64":
		what = "a whole number from 0 on"
		_, err = strconv.ParseUint(text, 10, 64)
	case "duration":
		what = durations
		if in := days.FindStringSubmatch(text); in != nil {
			n, _ := strconv.Atoi(in[1])
			return fmt.Errorf("%s is %s; write %dh for %s", f.Name, durations, n*24, text)
		}
		_, err = time.ParseDuration(text)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s is too large: %s", f.Name, text)
	case err != nil:
		return fmt.Errorf("%s is %s, not %q", f.Name, what, text)
	}
	return nil
}

// Empty returns how a flag names nothing: "is empty", for a text or a list, or "has an empty entry". It is "" for all
// other flags.
func Empty(f *pflag.Flag) string {
	list, ok := f.Value.(pflag.SliceValue)
	switch {
	case ok && len(list.GetSlice()) > 1 && slices.Contains(list.GetSlice(), ""):
		return "has an empty entry"
	case ok && (len(list.GetSlice()) == 0 || list.GetSlice()[0] == "") || f.Value.Type() == "string" && f.Value.String() == "":
		return "is empty"
	}
	return ""
}

// shown is a value of a file in words.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		return strconv.Quote(v)
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return fmt.Sprint(value)
}

// document begins a document of a YAML file, or ends one (YAML 1.2, section 9.1).
var document = regexp.MustCompile(`^(---|\.\.\.)(\s|$)`)

// secondDocument is the line where a second YAML document begins, 0 if there is
// none: what stands there would not be read.
func secondDocument(source []byte) int {
	begun := false
	for i, l := range strings.Split(string(source), "\n") {
		content := strings.TrimSpace(l)
		switch {
		case document.MatchString(l):
			if begun {
				return i + 1
			}
			begun = true
		case content != "" && content[0] != '#' && content[0] != '%':
			begun = true
		}
	}
	return 0
}

package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// checkValue says whether a value of a file has the type of its flag. koanf
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
			return fmt.Errorf("%s is a duration such as 10s or 1m30s, not %s", f.Name, shown(value))
		}
		return checkText(f, text)
	case "int":
		if _, ok := value.(int); !ok {
			return fmt.Errorf("%s is a whole number, not %s", f.Name, shown(value))
		}
	case "stringSlice":
		list, ok := value.([]any)
		if !ok {
			return fmt.Errorf("%s is a list such as [a, b], not %s", f.Name, shown(value))
		}
		for _, v := range list {
			if _, ok := v.(string); !ok {
				return fmt.Errorf("%s is a list of texts, and %s is none", f.Name, shown(v))
			}
		}
	default:
		if !isText {
			return fmt.Errorf("%s is a text, not %s; put it in quotes", f.Name, shown(value))
		}
	}
	return nil
}

// checkText says whether text, of a variable or of a file, can be read as what a
// flag holds.
func checkText(f *pflag.Flag, text string) error {
	switch f.Value.Type() {
	case "bool":
		if _, err := strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%s is true or false, not %q", f.Name, text)
		}
	case "int":
		if _, err := strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s is a whole number, not %q", f.Name, text)
		}
	case "duration":
		if _, err := time.ParseDuration(text); err != nil {
			return fmt.Errorf("%s is a duration such as 10s or 1m30s, not %q", f.Name, text)
		}
	}
	return nil
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

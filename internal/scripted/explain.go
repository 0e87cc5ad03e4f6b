package scripted

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

var (
	unknownField = regexp.MustCompile(`field (.+) not found in type \S+`)
	wrongKind    = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.+)")
)

// kinds are words for what a file holds and should hold, as a script's author
// knows them.
var kinds = map[string]string{
	"seq": "a list", "map": "a map", "str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing",
	"[]scripted.Line": "a list of lines", "scripted.Line": "a line", "string": "text", "time.Duration": "a time like 2s",
	"map[string]interface {}": "a map", "[]string": "a list of names",
}

// Explain says what is wrong with a script in its author's words. The decoder's own
// errors name this program's types.
func Explain(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	var all []string
	for _, text := range wrong.Errors {
		text = unknownField.ReplaceAllString(text, "a line has no ${1}; it has "+fields())
		if found := wrongKind.FindStringSubmatch(text); found != nil {
			has, wants := kinds[found[1]], kinds[found[3]]
			if has != "" && wants != "" {
				if found[2] != "" {
					has = fmt.Sprintf("%s (%s)", has, found[2])
				}
				text = strings.Replace(text, found[0], has+" is given where "+wants+" is expected", 1)
			}
		}
		all = append(all, text)
	}
	return errors.New(strings.Join(all, "; "))
}

// fields returns what a line may have.
func fields() string {
	var names []string
	for f := range reflect.TypeFor[Line]().Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return strings.Join(names, ", ")
}

package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size; it is written as 512MiB, 64KB or a plain number.
type Bytes int64

var units = []struct {
	name string
	size int64
}{
	{"TiB", 1 << 40},
	{"GiB", 1 << 30},
	{"MiB", 1 << 20},
	{"KiB", 1 << 10},
	{"TB", 1e12},
	{"GB", 1e9},
	{"MB", 1e6},
	{"KB", 1e3},
	{"B", 1},
}

func (b Bytes) String() string {
	for _, unit := range units[:4] {
		if b != 0 && int64(b)%unit.size == 0 {
			return strconv.FormatInt(int64(b)/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// ParseBytes reads the forms that Bytes is written in.
func ParseBytes(s string) (Bytes, error) {
	number, size := s, int64(1)
	for _, unit := range units {
		if rest, ok := strings.CutSuffix(s, unit.name); ok {
			number, size = strings.TrimSpace(rest), unit.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/size {
		return 0, errors.New("a size looks like 512MiB, 64KB or 4096")
	}
	return Bytes(n * size), nil
}

// checkDollars refuses a text that is not an amount of money.
func checkDollars(text string) error {
	whole, part, _ := strings.Cut(text, ".")
	if _, err := strconv.ParseUint(whole+part, 10, 62); err != nil || whole == "" || len(part) > 9 || len(whole) > 9 {
		return errors.New("an amount of dollars looks like 2.50")
	}
	return nil
}

// checkFolder refuses a folder without a name, such as that of an empty variable.
func checkFolder(text string) error {
	if text == "" {
		return errors.New("name a folder, such as ./parley-data")
	}
	return nil
}

// set reads text into the key's field.
func (k Key) set(c *Config, text string) error {
	switch field := k.field(c).(type) {
	case *string:
		if len(k.Choices) > 0 && !slices.Contains(k.Choices, text) {
			return errors.New("it is one of " + strings.Join(k.Choices, ", "))
		}
		*field = text
		return k.judge(text)
	case *bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("it is true or false")
		}
		*field = on
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("it is a whole number")
		}
		*field = n
		if k.Most > 0 && n > k.Most {
			return fmt.Errorf("it is at most %d", k.Most)
		}
		return k.positive(n > 0, n == 0)
	case *Bytes:
		n, err := ParseBytes(text)
		if err != nil {
			return err
		}
		*field = n
		if k.Most > 0 && n > Bytes(k.Most) {
			return fmt.Errorf("it is at most %s", Bytes(k.Most))
		}
		return k.positive(n > 0, n == 0)
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("a duration looks like 25s, 2m or 1h30m")
		}
		*field = d
		return k.positive(d > 0, d == 0)
	case *[]string:
		*field = nil
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*field = append(*field, part)
				if err := k.judge(part); err != nil {
					return err
				}
			}
		}
	default:
		return fmt.Errorf("the table of keys gives it the unknown type %T", field)
	}
	return nil
}

// judge checks a text with the key's own check.
func (k Key) judge(text string) error {
	if k.check == nil {
		return nil
	}
	return k.check(text)
}

func (k Key) positive(positive, zero bool) error {
	if positive || zero && k.Zero {
		return nil
	}
	return errors.New("it must be more than 0")
}

// Text returns the key's value in c as it is written in the file.
func (k Key) Text(c *Config) string {
	switch field := k.field(c).(type) {
	case *[]string:
		return strings.Join(*field, ", ")
	case *time.Duration:
		return shortDuration(*field)
	default:
		return fmt.Sprint(k.Value(c))
	}
}

// Value returns the key's value in c for JSON: sizes and durations as text.
func (k Key) Value(c *Config) any {
	switch field := k.field(c).(type) {
	case *string:
		return *field
	case *bool:
		return *field
	case *int:
		return *field
	case *Bytes:
		return field.String()
	case *time.Duration:
		return shortDuration(*field)
	case *[]string:
		return append([]string{}, *field...)
	default:
		return nil
	}
}

// Type returns the key's type for the reference page.
func (k Key) Type() string {
	switch k.field(&Config{}).(type) {
	case *bool:
		return "bool"
	case *int:
		return "number"
	case *Bytes:
		return "size"
	case *time.Duration:
		return "duration"
	case *[]string:
		return "list"
	default:
		if len(k.Choices) > 0 {
			return strings.Join(k.Choices, ", ")
		}
		return "text"
	}
}

// exposing says which setting opens the hub to everyone, and how to close it.
func (k Key) exposing() string {
	others := slices.DeleteFunc(slices.Clone(k.Choices), func(s string) bool { return s == k.Exposes })
	return fmt.Sprintf("%s is %s: set it to %s", k.Name, k.Exposes, strings.Join(others, " or "))
}

// wants describes valid values of the key.
func (k Key) wants() string {
	switch kind := k.Type(); kind {
	case "bool":
		return "true or false"
	case "number":
		return "a whole number"
	case "text", "size", "duration", "list":
		return "a " + kind
	default:
		return "one of " + kind
	}
}

// shortDuration writes 2m, where the standard library writes 2m0s.
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

package graph

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// maxFile bounds a graph or script file and what its aliases expand to.
const maxFile = 4 << 20

// toJSON turns a file that is JSON or YAML into JSON. Numbers keep their
// digits.
func toJSON(data []byte) (jsontext.Value, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("graph: a file of %d bytes; at most %d", len(data), maxFile)
	}
	if v := jsontext.Value(data); v.IsValid() {
		return v, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("graph: neither JSON nor YAML: %w", err)
	}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("graph: the file is empty")
	}
	w := yamlWriter{}
	if err := w.node(doc.Content[0], 0); err != nil {
		return nil, err
	}
	return w.out, nil
}

type yamlWriter struct{ out []byte }

func (w *yamlWriter) node(n *yaml.Node, depth int) error {
	// Aliases may make a document endlessly deep or large.
	if depth > 100 || len(w.out) > maxFile {
		return w.refuse(n, "the document is too deep or too large")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.node(n.Alias, depth+1)
	case yaml.SequenceNode:
		return w.list(n, depth)
	case yaml.MappingNode:
		return w.mapping(n, depth)
	}
	return w.scalar(n)
}

func (w *yamlWriter) list(n *yaml.Node, depth int) error {
	w.out = append(w.out, '[')
	for i, item := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.node(item, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *yamlWriter) mapping(n *yaml.Node, depth int) error {
	w.out = append(w.out, '{')
	seen := map[string]bool{}
	first := true
	for pair := range slices.Chunk(n.Content, 2) {
		key, value := pair[0], pair[1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return w.refuse(key, "a key must be plain text")
		}
		if seen[key.Value] {
			return w.refuse(key, "the key '%s' is given twice", key.Value)
		}
		seen[key.Value] = true
		if !first {
			w.out = append(w.out, ',')
		}
		first = false
		w.quote(key.Value)
		w.out = append(w.out, ':')
		if err := w.node(value, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, '}')
	return nil
}

func (w *yamlWriter) scalar(n *yaml.Node) error {
	switch n.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
	case "!!bool":
		w.out = append(w.out, strings.ToLower(n.Value)...)
	case "!!int":
		number, ok := new(big.Int).SetString(strings.ReplaceAll(n.Value, "_", ""), 0)
		if !ok {
			return w.refuse(n, "'%s' is not a number", n.Value)
		}
		w.out = number.Append(w.out, 10)
	case "!!float":
		text := plainFloat(n.Value)
		if !validNumber(text) {
			return w.refuse(n, "'%s' is not a number that JSON knows", n.Value)
		}
		w.out = append(w.out, text...)
	default:
		// Numbers that no float64 holds look like text to the YAML library.
		if n.Style == 0 && validNumber(n.Value) {
			w.out = append(w.out, n.Value...)
			return nil
		}
		w.quote(n.Value)
	}
	return nil
}

// plainFloat writes YAML's freer forms (+1.5, .5, 1_000.0, 2.) as JSON does.
func plainFloat(text string) string {
	text = strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	if head, tail, ok := strings.Cut(text, "."); ok && (tail == "" || tail[0] == 'e' || tail[0] == 'E') {
		text = head + ".0" + tail
	}
	return sign + text
}

func (w *yamlWriter) quote(s string) {
	// The YAML library has refused invalid UTF-8 already.
	w.out, _ = jsontext.AppendQuote(w.out, s)
}

func (w *yamlWriter) refuse(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("graph: line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

package value

import "github.com/go-json-experiment/json/jsontext"

// Weigh returns how many values a valid JSON text holds at most, counting inner
// ones, without making them.
func Weigh(valid jsontext.Value) int {
	weight := 1
	for i := 0; i < len(valid); i++ {
		switch valid[i] {
		case ',', '[', '{':
			weight++
		case '"':
			for i++; valid[i] != '"'; i++ {
				if valid[i] == '\\' {
					i++
				}
			}
		}
	}
	return weight
}

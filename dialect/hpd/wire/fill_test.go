package wire_test

import (
	"fmt"
	"reflect"
	"time"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

var enumValues = map[reflect.Type]string{
	reflect.TypeFor[wire.Delivery]():            "Steer",
	reflect.TypeFor[wire.InterruptionSource]():  "Parent",
	reflect.TypeFor[wire.CallType]():            "MCPServer",
	reflect.TypeFor[wire.OperationStatus]():     "InProgress",
	reflect.TypeFor[wire.LogLevel]():            "Warning",
	reflect.TypeFor[wire.ResponsePolicy]():      "targetedResponder",
	reflect.TypeFor[wire.RequestVisibility]():   "eligibleRespondersOnly",
	reflect.TypeFor[wire.RespondStatus]():       "timedOut",
	reflect.TypeFor[wire.PermissionChoice]():    "deny_always",
	reflect.TypeFor[wire.RetryStatus]():         "Exhausted",
	reflect.TypeFor[wire.CompactionStatus]():    "Performed",
	reflect.TypeFor[wire.ResolutionKind]():      "HostedFile",
	reflect.TypeFor[wire.PlanUpdate]():          "NoteAdded",
	reflect.TypeFor[wire.CheckpointOperation](): "Restored",
	reflect.TypeFor[wire.StateScope]():          "Branch",
	reflect.TypeFor[wire.MessageSource]():       "Steering",
	reflect.TypeFor[wire.MessageVisibility]():   "Hidden",
}

// filled returns a payload of a type in which every member has a distinct value.
func filled(name string) wire.Payload {
	v := reflect.New(reflect.TypeOf(wire.Zero(name))).Elem()
	n := 0
	fill(v, &n)
	payload, _ := v.Interface().(wire.Payload)
	return payload
}

func fill(v reflect.Value, n *int) {
	*n++
	switch v.Type() {
	case reflect.TypeFor[wire.Content]():
		v.Set(reflect.ValueOf(branch.Text(fmt.Sprintf("content %d", *n))))
		return
	case reflect.TypeFor[wire.Duration]():
		v.SetInt(int64(time.Duration(*n)*time.Hour + 1500*time.Millisecond))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2025, 3, 2, 9, 15, *n%60, 118e6, time.UTC)))
		return
	case reflect.TypeFor[wire.Extra]():
		return
	case reflect.TypeFor[wire.Raw]():
		v.SetBytes(fmt.Appendf(nil, `{"raw":[%d,1.50,null]}`, *n))
		return
	}
	if value, ok := enumValues[v.Type()]; ok {
		v.SetString(value)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text \"%d\"\n<é>", *n))
	case reflect.Int64:
		v.SetInt(int64(*n) + 1<<53)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.25)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"0": "main", "1": fmt.Sprint(*n)}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	default:
		panic("no filler for " + v.Type().String())
	}
}

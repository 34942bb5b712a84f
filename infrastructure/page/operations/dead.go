package operations

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"feedbox/infrastructure/operator"
	"feedbox/infrastructure/page"
)

// letterList is the dead letters of one consumer.
type letterList struct {
	Consumers []string
	Consumer  string
	Letters   []operator.DeadLetter
	More      bool // than Letters
}

// maxLetters bounds the letters that a view or an act reads. Views are not live, because a read locks
// letters on some brokers for a moment.
const maxLetters = 1000

// readLetters reads the dead letters of a consumer, by default of the first one. All tabs share a read.
func (s *Operations) readLetters(ctx context.Context, consumer string) (letterList, error) {
	return s.letters.get(consumer, func() (l letterList, err error) {
		if l.Consumers, err = s.o.Port.Consumers(ctx, s.o.Management); err != nil {
			return l, err
		}
		if l.Consumer = consumer; consumer == "" && len(l.Consumers) > 0 {
			l.Consumer = l.Consumers[0]
		}
		if l.Consumer == "" {
			return l, nil
		}
		l.Letters, l.More, err = s.o.Port.ReadDeadLetters(ctx, l.Consumer, maxLetters)
		return l, err
	})
}

// deadView is a page of the dead letters of a consumer, with a summary by reason.
type deadView struct {
	letterList
	Reasons []operator.DeadLetterReason
	Reason  string
	Rows    []operator.DeadLetter
	Page    pageOf
}

func (s *Operations) dead(r *http.Request) (any, error) {
	q := r.URL.Query()
	l, err := s.readLetters(r.Context(), q.Get("consumer"))
	if err != nil {
		return nil, err
	}
	v := deadView{letterList: l, Reasons: operator.DeadLetterReasons(l.Letters), Reason: q.Get("reason")}
	rows := l.Letters
	if v.Reason != "" {
		rows = slices.DeleteFunc(slices.Clone(rows), func(l operator.DeadLetter) bool { return l.Reason != v.Reason })
	}
	from, to := paged(q, len(rows), r.URL.Path, &v.Page)
	v.Rows = rows[from:to]
	return v, nil
}

// letterView is a dead letter.
type letterView struct {
	operator.DeadLetter
	Consumer, Document string
	Cut                bool
	Headers            []page.Fact
}

func (s *Operations) letter(r *http.Request) (any, error) {
	l, consumer, err := s.oneLetter(r.Context(), r.URL.Query().Get("consumer"), r.PathValue("letter"))
	if err != nil {
		return nil, err
	}
	v := letterView{DeadLetter: l, Consumer: consumer}
	v.Document, v.Cut = indented(l.Body)
	for _, name := range slices.Sorted(maps.Keys(l.Headers)) {
		v.Headers = append(v.Headers, page.Fact{Name: name, Value: l.Headers[name]})
	}
	return v, nil
}

func (s *Operations) oneLetter(ctx context.Context, consumer, id string) (operator.DeadLetter, string, error) {
	l, err := s.readLetters(ctx, consumer)
	if err != nil {
		return operator.DeadLetter{}, "", err
	}
	i := slices.IndexFunc(l.Letters, func(l operator.DeadLetter) bool { return l.ID == id })
	if i < 0 {
		return operator.DeadLetter{}, "", &page.Refusal{
			Status: http.StatusNotFound, Title: "No such dead letter", Next: "See the list of dead letters.",
			Detail: "It was sent again or discarded, has expired, or is not among the oldest " + page.Number(maxLetters) + ".",
		}
	}
	return l.Letters[i], l.Consumer, nil
}

// deadActs returns the acts on dead letters. The query names the consumer, and a letter, a key or a reason.
func (s *Operations) deadActs() []page.Act {
	return []page.Act{
		{Path: "resubmit", Title: "Send dead letters again", Verb: "Send again", Preview: s.previewResubmit, Do: s.doResubmit},
		{Path: "edit", Title: "Correct a dead letter", Verb: "Send the corrected letter", Preview: s.previewLetterEdit, Do: s.doLetterEdit},
		{Path: "discard", Title: "Discard dead letters for good", Verb: "Discard", Danger: true, Preview: s.previewDiscard, Do: s.doDiscard},
	}
}

// chosenBy returns the choice of a query. A query without one chooses all letters.
func chosenBy(q url.Values) func(operator.DeadLetter) bool {
	return func(l operator.DeadLetter) bool {
		for name, value := range map[string]string{"letter": l.ID, "key": l.Key, "reason": l.Reason} {
			if q.Has(name) && q.Get(name) != value {
				return false
			}
		}
		return true
	}
}

func (s *Operations) planResubmit(ctx context.Context, q url.Values) (*operator.Resubmission, error) {
	l, err := s.readLetters(ctx, q.Get("consumer"))
	if err != nil {
		return nil, err
	}
	return s.o.Port.PlanResubmission(ctx, s.o.Management, l.Consumer, l.Letters, chosenBy(q))
}

// letterStamp identifies letters in any order, because RabbitMQ and SQS may return them in another one.
func letterStamp(letters []operator.DeadLetter) string {
	var ids []string
	for _, l := range letters {
		ids = append(ids, l.ID)
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func planStamp(plan *operator.Resubmission) string {
	var letters []operator.DeadLetter
	for _, k := range plan.Keys {
		letters = append(letters, k.Letters...)
	}
	return letterStamp(letters)
}

// unchanged refuses letters that are not those of the preview. One that has arrived since was not shown.
func unchanged(o *page.Order, stamp string) error {
	if stamp == o.Stamp {
		return nil
	}
	return &page.Refusal{Status: http.StatusConflict, Title: "The dead letters have changed", Detail: "Other letters match now than in the preview. Nothing was done.", Next: "Go back to the list and repeat the act."}
}

func (s *Operations) previewResubmit(ctx context.Context, q url.Values) (*page.Preview, error) {
	plan, err := s.planResubmit(ctx, q)
	if err != nil {
		return nil, err
	}
	p := &page.Preview{
		Summary: fmt.Sprintf("%d dead letters of %d keys go to %s again.", plan.Letters, len(plan.Keys), plan.Consumer),
		Facts:   []page.Fact{{Name: "letters", Value: fmt.Sprint(plan.Letters)}, {Name: "keys", Value: fmt.Sprint(len(plan.Keys))}, {Name: "dropped as repeats", Value: fmt.Sprint(plan.Repeats)}},
		Stamp:   planStamp(plan), Template: "effects", Data: plan.Effects,
	}
	if len(plan.LeftOut) > 0 {
		p.Warning = fmt.Sprintf("Left out are keys with an older letter that was not chosen: %s.", listed(plan.LeftOut))
	}
	if plan.Letters == 0 {
		p.Blocked = "No letter can be sent again."
	}
	if plan.Letters > 1 {
		p.Typed = fmt.Sprint(plan.Letters)
	}
	return p, nil
}

func (s *Operations) doResubmit(ctx context.Context, o *page.Order) error {
	s.letters.forget()
	plan, err := s.planResubmit(ctx, o.Values)
	if err != nil {
		return err
	}
	return s.resubmit(ctx, o, plan)
}

func (s *Operations) resubmit(ctx context.Context, o *page.Order, plan *operator.Resubmission) error {
	if err := unchanged(o, planStamp(plan)); err != nil {
		return err
	}
	done, total := int64(0), int64(plan.Letters)
	failures, err := s.o.Port.Resubmit(ctx, plan, func() { done++; o.Progress(done, total) })
	return s.settled(o, plan.Consumer, fmt.Sprintf("Sent again: %d of %d dead letters.", done, total), failures, err)
}

// settled reports the result of an act.
func (s *Operations) settled(o *page.Order, consumer, done string, failures []operator.LetterFailure, err error) error {
	s.letters.forget()
	o.Say(done)
	o.Next("See the dead letters", "/dead?consumer="+url.QueryEscape(consumer))
	for _, f := range failures {
		o.Say(fmt.Sprintf("Key %s stopped at letter %s, %d letters remain: %v", f.Key, f.Letter, f.Left, f.Err))
	}
	if err == nil && len(failures) > 0 {
		return &page.Refusal{Status: http.StatusConflict, Title: "Some letters remain", Detail: failures[0].Err.Error(), Next: "Correct the cause, then repeat the act."}
	}
	return err
}

func (s *Operations) previewLetterEdit(ctx context.Context, q url.Values) (*page.Preview, error) {
	l, _, err := s.oneLetter(ctx, q.Get("consumer"), q.Get("letter"))
	if err != nil {
		return nil, err
	}
	p, err := s.previewResubmit(ctx, q)
	if err != nil {
		return nil, err
	}
	text := q.Get("body")
	if text == "" {
		var cut bool
		if text, cut = indented(l.Body); cut {
			p.Blocked = "The body is too large for this form: use feedbox deadletters edit."
		}
	} else if json.Valid(l.Body) && !json.Valid([]byte(text)) {
		return nil, &page.Refusal{Status: http.StatusUnprocessableEntity, Title: "The corrected body is not JSON", Detail: "Nothing was sent.", Next: "Go back and correct it; your input is still there."}
	}
	p.Facts = []page.Fact{{Name: "event", Value: l.Event}, {Name: "key", Value: l.Key}, {Name: "reason", Value: l.Reason}}
	p.Fields = []page.Field{{Name: "body", Label: "The body", Kind: "area", Value: text, Required: true, Hint: "The stored event stays as it is."}}
	return p, nil
}

func (s *Operations) doLetterEdit(ctx context.Context, o *page.Order) error {
	s.letters.forget()
	plan, err := s.planResubmit(ctx, o.Values)
	if err != nil {
		return err
	}
	plan.Bodies = map[string][]byte{o.Values.Get("letter"): []byte(o.Values.Get("body"))}
	return s.resubmit(ctx, o, plan)
}

func (s *Operations) previewDiscard(ctx context.Context, q url.Values) (*page.Preview, error) {
	l, err := s.readLetters(ctx, q.Get("consumer"))
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(slices.Clone(l.Letters), func(l operator.DeadLetter) bool { return !chosenBy(q)(l) })
	p := &page.Preview{
		Summary: fmt.Sprintf("%d dead letters of %s are removed. The consumer never handles them.", len(chosen), l.Consumer),
		Warning: "No copy remains on the broker. The events stay in the store until they expire.", Typed: fmt.Sprint(len(chosen)),
		Stamp: letterStamp(chosen),
	}
	if len(chosen) == 0 {
		p.Blocked = "No dead letter matches."
	}
	return p, nil
}

func (s *Operations) doDiscard(ctx context.Context, o *page.Order) error {
	s.letters.forget()
	l, err := s.readLetters(ctx, o.Values.Get("consumer"))
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(l.Letters), func(l operator.DeadLetter) bool { return !chosenBy(o.Values)(l) })
	if err := unchanged(o, letterStamp(chosen)); err != nil {
		return err
	}
	done, total := int64(0), int64(len(chosen))
	failures, err := s.o.Port.Discard(ctx, l.Consumer, chosen, func() { done++; o.Progress(done, total) })
	return s.settled(o, l.Consumer, fmt.Sprintf("Discarded: %d of %d dead letters.", done, total), failures, err)
}

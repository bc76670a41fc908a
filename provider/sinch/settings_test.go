package sinch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dispatcher/provider"
	"dispatcher/provider/web/webtest"
)

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{
		"service_plan_id": plan, "token_file": "token", "region": "eu", "from": 12345,
		"callback_secret_files": []any{"older", "secret"}, "absence_is_certain": true,
	}, files.Environment(public))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{
		Plan: plan, Token: token, From: "12345", Secrets: []string{"the older s3cret", secret},
		AbsenceIsCertain: true, Callback: public,
	}
	if diff := cmp.Diff(want, cfg, cmpopts.IgnoreFields(Config{}, "Web")); diff != "" {
		t.Error(diff)
	}
	if got := cfg.Web.BaseURL.String(); got != "https://eu.sms.api.sinch.com" {
		t.Errorf("base URL %s", got)
	}
}

func TestRegionIsTheUnitedStatesUnlessSaid(t *testing.T) {
	t.Parallel()
	cfg, err := ParseSettings(map[string]any{"service_plan_id": plan, "token_file": "token"},
		files.Environment(public))
	if err != nil || cfg.Web.BaseURL.String() != "https://us.sms.api.sinch.com" {
		t.Errorf("%v, %v", cfg.Web.BaseURL, err)
	}
}

func TestFaultsAreReportedTogetherUnderTheirKeys(t *testing.T) {
	t.Parallel()
	_, err := ParseSettings(map[string]any{
		"service_plan_id": "../other", "region": "mars",
		"callback_secret_files": []any{"a", "b", "c"}, "tokn_file": "token",
	}, files.Environment(public))
	webtest.CheckOnlyFaults(t, err, []string{
		"service_plan_id: ", "token_file: is missing", "region: ", "callback_secret_files: ",
		"tokn_file: unknown setting; did you mean token_file?",
	}, token, secret)
}

func TestReceiptsArePromisedOnlyWhereTheyCanComeAndBeVerified(t *testing.T) {
	t.Parallel()
	values := map[string]any{
		"service_plan_id": plan, "token_file": "token", "callback_secret_files": "secret",
	}
	webtest.CheckPromises(t, Open, values, files.Environment(public), "callback_secret_files",
		provider.Capabilities{LookupFor: 23 * time.Hour, KeyInReceipt: true, Receipts: true})
}

-- Why a record could not be used, in a sentence for its producer without number and text. reason is the bounded word.
alter table dispatcher.messages add column detail text;

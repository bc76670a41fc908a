package config

// ZonesOf is zonesOf.
var ZonesOf = zonesOf

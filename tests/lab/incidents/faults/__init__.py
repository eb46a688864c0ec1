"""The faults: functions of an Incident, and the healthy changes that look like one."""

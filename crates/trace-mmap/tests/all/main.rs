//! Tests of archives: conversion, cursors, checks, cuts, damage, parts.

mod archive;
mod checks;
mod cut;
mod hostile;
mod parts;
#[path = "../../../../tests/shared.rs"]
mod shared;

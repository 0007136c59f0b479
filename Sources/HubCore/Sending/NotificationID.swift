/// The public id of one notification (spec `rest-api.md` 5.3): 32 lower-case hexadecimal digits,
/// `-`, `yyyyMMddHHmmss` in UTC, `-`, a number, `-`, a number.
package struct NotificationID: RawRepresentable, Hashable, Sendable {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

package import Foundation

/// The public id of one notification (spec `rest-api.md` 5.3): 32 lower-case hexadecimal digits,
/// `-`, `yyyyMMddHHmmss` in UTC, `-`, a number, `-`, a number.
package struct NotificationID: RawRepresentable, Hashable, Sendable {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// A new id: 128 random bits and the moment of acceptance. The two numbers at the end name the
  /// service's machines in the recordings; here they are random and only keep the form.
  package init(at now: Date) {
    var random = SystemRandomNumberGenerator()
    let digits = [random.next(), random.next()].map { Self.padded(String($0, radix: 16), to: 16) }
    let machine = Int.random(in: 10_000_000...99_999_999, using: &random)
    let queue = Int.random(in: 0...31, using: &random)
    rawValue = "\(digits.joined())-\(Self.timestamp(now))-\(machine)-\(queue)"
  }

  private static func timestamp(_ date: Date) -> String {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = .gmt
    let parts = calendar.dateComponents(
      [.year, .month, .day, .hour, .minute, .second], from: date)
    let rest = [parts.month, parts.day, parts.hour, parts.minute, parts.second]
    return padded(String(parts.year ?? 0), to: 4)
      + rest.map { padded(String($0 ?? 0), to: 2) }.joined()
  }

  private static func padded(_ digits: String, to width: Int) -> String {
    String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}

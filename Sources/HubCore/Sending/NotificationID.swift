package import Foundation
import Wire

/// The public id of one notification (docs/protocol/rest.md, section 5.3): 32 lower-case
/// hexadecimal digits, `-`, `yyyyMMddHHmmss` in UTC, `-`, a number, `-`, a number.
package struct NotificationID: RawRepresentable, Hashable, Sendable {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// Generates an id: 128 random bits and the time of acceptance. The two numbers at the end
  /// identify the original service's machines in the recordings; here they are random and only
  /// preserve the form.
  package init(at now: Date, random: HubRandom) {
    rawValue = Self.words(at: now, random).joined(separator: "-")
  }

  /// Generates an id of a scheduled notification (docs/protocol/rest.md, section 5.6): the same
  /// parts joined by `_`, and the name of a queue and a number, which are random here as well.
  package init(scheduledAt now: Date, random: HubRandom) {
    let place: Int64 = random.number(in: 10_000_000_000_000_000...99_999_999_999_999_999)
    let queue = "QNHQueue\(Self.digits(random))-S\(place)"
    rawValue = (Self.words(at: now, random) + [queue]).joined(separator: "_")
  }

  private static func words(at now: Date, _ random: HubRandom) -> [String] {
    [
      digits(random), timestamp(now), String(random.number(in: 10_000_000...99_999_999)),
      String(random.number(in: 0...31)),
    ]
  }

  /// 128 random bits.
  private static func digits(_ random: HubRandom) -> String { Hex.encode(random.bytes(16)) }

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

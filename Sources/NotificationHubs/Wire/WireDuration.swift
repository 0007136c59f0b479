import Wire

#if canImport(FoundationEssentials)
  package import FoundationEssentials
#else
  package import Foundation
#endif

/// Durations as hub descriptions write them: `xs:duration` (docs/protocol/rest.md, section 8.1).
package enum WireDuration {
  /// The text for an unlimited duration: the maximum of .NET.
  package static let forever = "P10675199DT2H48M5.4775807S"
  /// The value of ``forever``; longer durations count as unlimited too.
  private static let foreverSeconds: Double = 10_675_199 * 86_400

  /// A duration in seconds as `P1DT2H3M4.5S`; `nil` is unlimited.
  package static func text(_ seconds: TimeInterval?) -> String {
    guard let seconds, seconds < foreverSeconds else { return forever }
    let ticks = Int64((max(seconds, 0) * 1e7).rounded())
    let whole = ticks / 10_000_000
    let (days, rest) = whole.quotientAndRemainder(dividingBy: 86_400)
    var fraction = String(ticks % 10_000_000)
    fraction = String(repeating: "0", count: 7 - fraction.count) + fraction
    while fraction.last == "0" { fraction.removeLast() }
    var time = ""
    if rest >= 3600 { time += "\(rest / 3600)H" }
    if rest / 60 % 60 > 0 { time += "\(rest / 60 % 60)M" }
    if rest % 60 > 0 || !fraction.isEmpty {
      time += "\(rest % 60)" + (fraction.isEmpty ? "" : ".\(fraction)") + "S"
    }
    if days == 0, time.isEmpty { return "PT0S" }
    return "P" + (days > 0 ? "\(days)D" : "") + (time.isEmpty ? "" : "T\(time)")
  }

  /// The value of a parsed text.
  package enum Reading: Hashable, Sendable {
    case forever
    /// A duration in seconds, not negative.
    case seconds(TimeInterval)
  }

  /// Parses a duration; as in .NET, a year has 365 days and a month 30.
  /// - Returns: `nil` if the text is not a duration or is negative.
  package static func parse(_ text: String) -> Reading? {
    var rest = Substring(text.trimmingBlanks)
    guard rest.utf8.count <= 64, rest.first == "P" else { return nil }
    rest = rest.dropFirst()
    var seconds = 0.0
    var units: Substring = "YMD"
    var weights: [Character: Double] = ["Y": 365 * 86_400, "M": 30 * 86_400, "D": 86_400]
    var found = false
    while let first = rest.first {
      if first == "T", units != "HMS", !units.hasSuffix("S") {
        units = "HMS"
        weights = ["H": 3600, "M": 60, "S": 1]
        rest = rest.dropFirst()
        guard !rest.isEmpty else { return nil }
        continue
      }
      let digits = rest.prefix { ("0"..."9").contains($0) || $0 == "." }
      rest = rest.dropFirst(digits.count)
      guard let unit = rest.first, let place = units.firstIndex(of: unit),
        let weight = weights[unit], let number = Double(digits),
        unit == "S" || !digits.contains(".")
      else { return nil }
      rest = rest.dropFirst()
      units = units[units.index(after: place)...]
      // Nothing may follow the seconds; this also keeps `T` from starting the time again.
      if weights["S"] != nil, units.isEmpty, !rest.isEmpty { return nil }
      seconds += number * weight
      found = true
    }
    guard found else { return nil }
    return seconds >= foreverSeconds ? .forever : .seconds(seconds)
  }
}

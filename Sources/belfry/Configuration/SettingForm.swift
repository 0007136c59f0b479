import Foundation
import HubCore

/// The conversion between a value of the server's options and the texts of a setting.
struct SettingForm<Value>: Sendable {
  let kind: Setting.Kind
  /// The text of a default; `nil` if there is none.
  let show: @Sendable (Value) -> String?
  /// Reads valid texts.
  let read: @Sendable ([String]) -> Value?

  /// A single text.
  static func one(
    _ kind: Setting.Kind, _ show: @escaping @Sendable (Value) -> String?,
    _ read: @escaping @Sendable (String) -> Value?
  ) -> SettingForm {
    SettingForm(kind: kind, show: show) { $0.first.flatMap(read) }
  }

  static func integer(_ range: ClosedRange<Int>) -> SettingForm
  where Value: FixedWidthInteger & Sendable {
    .one(.integer(range), { "\($0)" }, { Value($0) })
  }

  static func integer<Number: FixedWidthInteger & Sendable>(
    _ range: ClosedRange<Int>
  ) -> SettingForm
  where Value == Number? {
    .one(.integer(range), { $0.map { "\($0)" } }, { Number($0) })
  }
}

extension SettingForm
where Value: RawRepresentable & CaseIterable & Sendable, Value.RawValue == String {
  static var word: SettingForm {
    .one(.choice(Value.allCases.map(\.rawValue)), { $0.rawValue }, { Value(rawValue: $0) })
  }
}

extension SettingForm where Value == String {
  static var text: SettingForm { .one(.text, \.self, \.self) }
}

extension SettingForm where Value == String? {
  static var text: SettingForm { .one(.text, \.self, \.self) }
  static func choice(_ words: [String]) -> SettingForm {
    .one(.choice(words), \.self, \.self)
  }
}

extension SettingForm where Value == [String] {
  static var list: SettingForm {
    SettingForm(kind: .list, show: { _ in nil }, read: \.self)
  }
}

extension SettingForm where Value == Bool {
  static var flag: SettingForm { .one(.flag, { "\($0)" }, { $0 == "true" }) }
  static var onOff: SettingForm {
    .one(.choice(["on", "off"]), { $0 ? "on" : "off" }, { $0 == "on" })
  }
}

extension SettingForm where Value == Duration {
  static func seconds(_ range: ClosedRange<Int>) -> SettingForm {
    .one(.integer(range), { "\($0.components.seconds)" }, { Int($0).map { .seconds($0) } })
  }
}

extension SettingForm where Value == Double {
  /// A whole number of units of so many seconds.
  static func times(_ unit: Double, _ range: ClosedRange<Int>) -> SettingForm {
    .one(.integer(range), { "\(Int(($0 / unit).rounded()))" }, { Double($0).map { $0 * unit } })
  }

  static var percent: SettingForm {
    .one(.integer(1...100), { "\(Int(($0 * 100).rounded()))" }, { Double($0).map { $0 / 100 } })
  }
}

extension SettingForm where Value == Double? {
  /// Days, in seconds; 0 is `nil`, forever.
  static func days(upTo most: Int) -> SettingForm {
    .one(
      .integer(0...most), { "\(Int(($0 ?? 0) / 86_400))" },
      { Double($0).map { $0 == 0 ? nil : $0 * 86_400 } })
  }
}

extension SettingForm where Value == TextRetention {
  /// A time, or a word.
  static var texts: SettingForm {
    let range = 60...3650 * 86_400
    let words: [(word: String, value: TextRetention)] = [
      ("notification", .notification), ("off", .off),
    ]
    return .one(
      .time(range, or: words.map(\.word)), { value in words.first { $0.value == value }?.word },
      { text in
        words.first { $0.word == text }?.value
          ?? Reader<Int>.seconds(text, range).map { .time(TimeInterval($0)) }
      })
  }
}

import Wire

/// A device token: 32 bytes, 64 hex digits on the wire, kept without an allocation.
struct APNsToken: Hashable, Sendable {
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  /// All zeros.
  fileprivate init() {}

  init(_ generator: inout SeededGenerator) {
    words = (generator.next(), generator.next(), generator.next(), generator.next())
  }

  /// Reads exactly 64 hex digits of either case; `nil` for anything else.
  init?(_ digits: some Collection<UInt8>) {
    guard digits.count == 64 else { return nil }
    var index = 0
    var valid = true
    withUnsafeMutableBytes(of: &words) { bytes in
      for digit in digits {
        guard let value = Hex.value(digit) else {
          valid = false
          return
        }
        bytes[index / 2] = bytes[index / 2] << 4 | value
        index += 1
      }
    }
    guard valid else { return nil }
  }

  /// 64 lower-case digits.
  var text: String {
    withUnsafeBytes(of: words) { Hex.encode($0) }
  }

  static func == (left: Self, right: Self) -> Bool {
    left.words.0 == right.words.0 && left.words.1 == right.words.1
      && left.words.2 == right.words.2 && left.words.3 == right.words.3
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}

/// The identity of a device at APNs, and its environment and kind of token.
struct APNsHandle: Hashable, Sendable {
  let token: APNsToken
  let environment: APNsEnvironment
  let kind: APNsKind

  /// A placeholder for a deleted device.
  static let none = APNsHandle(token: APNsToken(), environment: .production, kind: .alert)
}

/// The header fields of a push that the device and its event stream see.
struct APNsHeaders: Sendable {
  let topic: String
  /// `nil` when the request had none, as for the other fields.
  let pushType: APNsPushType?
  let priority: UInt8?
  /// Unix seconds.
  let expiration: Int64?
  let collapseID: String?
  /// Of a broadcast.
  var channelID: String?

  /// Priorities 5 and 1 are held while the device is in low-power mode.
  var urgency: Urgency { priority == 5 || priority == 1 ? .normal : .high }

  /// The fields of the request by their `apns-` names.
  var fields: [(name: String, value: String)] {
    var fields = [("apns-topic", topic)]
    if let pushType { fields.append(("apns-push-type", pushType.rawValue)) }
    if let priority { fields.append(("apns-priority", String(priority))) }
    if let expiration { fields.append(("apns-expiration", String(expiration))) }
    if let collapseID { fields.append(("apns-collapse-id", collapseID)) }
    if let channelID { fields.append(("apns-channel-id", channelID)) }
    return fields
  }
}

/// A message id in the UUID form of APNs, kept as 16 bytes and the case of its letters, so that it
/// can be echoed as received without keeping a string.
struct APNsMessageID: Hashable, Sendable {
  let high: UInt64
  let low: UInt64
  /// A bit mask of upper-case letters; other digits are lower-case (bit 31 is the first hex digit).
  private let upperCase: UInt32

  init(high: UInt64, low: UInt64, upperCase: Bool) {
    (self.high, self.low, self.upperCase) = (high, low, upperCase ? .max : 0)
  }

  /// Reads 8-4-4-4-12 hex digits of either case; `nil` when it is anything else.
  init?(_ text: UnsafeRawBufferPointer) {
    guard text.count == 36 else { return nil }
    var words: (UInt64, UInt64) = (0, 0)
    var upper: UInt32 = 0
    var digit = 0
    for (index, byte) in text.enumerated() {
      if index == 8 || index == 13 || index == 18 || index == 23 {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = Hex.value(byte) else { return nil }
      if digit < 16 { words.0 = words.0 << 4 | UInt64(value) }
      if digit >= 16 { words.1 = words.1 << 4 | UInt64(value) }
      if byte >= UInt8(ascii: "A"), byte <= UInt8(ascii: "F") { upper |= 1 << (31 - digit) }
      digit += 1
    }
    (high, low, upperCase) = (words.0, words.1, upper)
  }

  init?(_ text: String) {
    var text = text
    guard let id = text.withUTF8({ APNsMessageID(UnsafeRawBufferPointer($0)) }) else { return nil }
    self = id
  }

  /// The 36 characters.
  var bytes: [UInt8] {
    var out: [UInt8] = []
    out.reserveCapacity(36)
    for digit in 0..<32 {
      if digit == 8 || digit == 12 || digit == 16 || digit == 20 { out.append(UInt8(ascii: "-")) }
      let word = digit < 16 ? high : low
      let value = UInt8(truncatingIfNeeded: word >> UInt64((15 - digit & 15) * 4)) & 15
      let isUpper = upperCase & (1 << UInt32(31 - digit)) != 0
      out.append(isUpper ? Hex.upperDigit(value) : Hex.digit(value))
    }
    return out
  }

  var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// The error for a payload that the push service or the device would reject or ignore.
public struct PayloadError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of fault; later versions may add more.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The kind in words, such as `too large`.
    public let description: String
    /// The payload is larger than the push service accepts.
    public static let tooLarge = Kind(description: "too large")
    /// A member that this kind of push requires is missing.
    public static let missing = Kind(description: "missing")
    /// A number, date or text is outside the range that the push service allows.
    public static let outOfRange = Kind(description: "out of range")
    /// A text has the wrong format.
    public static let malformed = Kind(description: "malformed")
    /// A name is reserved by the push service.
    public static let reserved = Kind(description: "reserved")
    /// Two members exclude each other.
    public static let conflicting = Kind(description: "conflicting")
  }

  /// The kind of fault.
  public let kind: Kind
  /// The member or header at fault, named as on the wire, such as `aps.badge`.
  public let member: String
  /// A description of the fault and its remedy, without any content of the payload.
  public let problem: String

  init(_ kind: Kind, _ member: String, _ problem: String) {
    self.kind = kind
    self.member = member
    self.problem = problem
  }

  /// The member and the problem in one sentence.
  public var description: String { "'\(member)' \(problem)" }
}

extension PayloadError {
  /// - Throws: ``PayloadError`` of kind `tooLarge`.
  static func check(size: Int, limit: Int, of what: String) throws(PayloadError) {
    guard size <= limit else {
      throw PayloadError(.tooLarge, what, "has \(size) bytes; at most \(limit) are allowed")
    }
  }

  /// - Throws: ``PayloadError`` of kind `outOfRange`.
  static func check<Number: Comparable>(
    _ number: Number?, in range: ClosedRange<Number>, _ member: String
  ) throws(PayloadError) {
    guard let number, !range.contains(number) else { return }
    throw PayloadError(
      .outOfRange, member, "must be \(range.lowerBound) to \(range.upperBound), not \(number)")
  }

  /// - Throws: ``PayloadError`` for a text that is empty or too long; `nil` is valid.
  /// - Parameter limit: The limit in bytes of UTF-8.
  static func check(
    _ text: String?, upTo limit: Int = .max, _ member: String
  ) throws(PayloadError) {
    guard let text else { return }
    if text.isEmpty { throw PayloadError(.malformed, member, "is empty; leave it out instead") }
    guard text.utf8.count <= limit else {
      throw PayloadError(
        .outOfRange, member, "has \(text.utf8.count) bytes; at most \(limit) are allowed")
    }
  }

  /// - Throws: ``PayloadError`` for a text that is not a valid header value.
  static func check(
    header value: String?, upTo limit: Int = 1024, _ name: String
  ) throws(PayloadError) {
    try check(value, upTo: limit, name)
    guard let value else { return }
    guard value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), value.first != " ",
      value.last != " "
    else {
      throw PayloadError(
        .malformed, name, "goes into a header: use ASCII without control characters")
    }
  }
}

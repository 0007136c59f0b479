/// Why a payload cannot be made: the push service, or the device, would refuse or ignore it.
public struct PayloadError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kinds of fault; a later version may add some.
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    public let description: String
    /// More bytes than the push service takes.
    public static let tooLarge = Kind(description: "too large")
    /// Something that this kind of push must have is not there.
    public static let missing = Kind(description: "missing")
    /// A number, date or text outside what the push service allows.
    public static let outOfRange = Kind(description: "out of range")
    /// A text of the wrong form.
    public static let malformed = Kind(description: "malformed")
    /// A name that the push service keeps for itself.
    public static let reserved = Kind(description: "reserved")
    /// Two things that exclude each other.
    public static let conflicting = Kind(description: "conflicting")
  }

  public let kind: Kind
  /// The member or header at fault, as on the wire: `aps.badge`.
  public let member: String
  /// What is wrong and what would be right; no content of the payload.
  public let problem: String

  init(_ kind: Kind, _ member: String, _ problem: String) {
    self.kind = kind
    self.member = member
    self.problem = problem
  }

  public var description: String { "'\(member)' \(problem)" }
}

extension PayloadError {
  /// - Throws: ``PayloadError`` of the kind `tooLarge`.
  static func check(size: Int, limit: Int, of what: String) throws(PayloadError) {
    guard size <= limit else {
      throw PayloadError(.tooLarge, what, "has \(size) bytes; at most \(limit) are allowed")
    }
  }

  /// - Throws: ``PayloadError`` of the kind `outOfRange`.
  static func check<Number: Comparable>(
    _ number: Number?, in range: ClosedRange<Number>, _ member: String
  ) throws(PayloadError) {
    guard let number, !range.contains(number) else { return }
    throw PayloadError(
      .outOfRange, member, "must be \(range.lowerBound) to \(range.upperBound), not \(number)")
  }

  /// - Throws: ``PayloadError`` for a text that is there and empty, or too long.
  /// - Parameter limit: In bytes of UTF-8.
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

  /// - Throws: ``PayloadError`` for a text that cannot be a header's value.
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

/// HKDF-SHA256 with the labels of RFC 9180, section 4.
struct LabeledDerivation: Sendable {
  private static let version = Array("HPKE-v1".utf8)

  /// What all labels are bound to.
  let suiteID: [UInt8]

  /// - Returns: 32 bytes.
  func extract(salt: [UInt8] = [], label: String, _ secret: [UInt8]) throws -> [UInt8] {
    try Primitives.authenticationCode(
      of: Self.version + suiteID + Array(label.utf8) + secret, key: salt)
  }

  /// - Parameter count: At most 64: two blocks are all that these suites ask for.
  func expand(
    _ pseudorandomKey: [UInt8], label: String, info: [UInt8], count: Int
  ) throws -> [UInt8] {
    precondition(count <= 64)
    let labeled =
      HPKESuite.bytes(of: UInt16(count)) + Self.version + suiteID + Array(label.utf8) + info
    let first = try Primitives.authenticationCode(of: labeled + [1], key: pseudorandomKey)
    guard count > first.count else { return Array(first.prefix(count)) }
    let second = try Primitives.authenticationCode(
      of: first + labeled + [2], key: pseudorandomKey)
    return Array((first + second).prefix(count))
  }
}

import Wire

extension Collection<UInt8> {
  /// The Firebase installation id that a handle of FCM is or begins with: 22 characters of base 64
  /// URL for 17 bytes that begin with the bits 0111, then the end, or the colon of a registration
  /// token. `nil` for a handle of another form.
  package var firebaseInstallationID: SubSequence? {
    guard let first, (0x63...0x66).contains(first),
      let end = index(startIndex, offsetBy: 22, limitedBy: endIndex),
      end == endIndex || self[end] == UInt8(ascii: ":")
    else { return nil }
    let id = self[startIndex..<end]
    return id.allSatisfy(\.isBase64URL) ? id : nil
  }
}

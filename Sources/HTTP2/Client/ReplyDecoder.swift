import CNghttp2

/// Reads the header blocks of replies (HPACK, RFC 7541). Our SETTINGS leave the peer no dynamic
/// table, so that each block is read by itself: in most of them only the status is looked at.
/// For one thread.
final class ReplyDecoder {
  /// The name of a reply header that a caller wants.
  struct WantedHeader {
    let name: [UInt8]
    fileprivate let index: Int

    init(_ name: String) {
      self.name = Array(name.utf8)
      index = StaticTable.index(ofName: self.name)
    }

    /// Whether a name of so many bytes in Huffman code, 5 to 8 bits for each character of a name, can
    /// be this one.
    fileprivate func mayHaveCodedLength(_ count: Int) -> Bool {
      (name.count * 5 / 8...name.count).contains(count)
    }
  }

  enum Failure: Error {
    /// The block is no HPACK, or uses a table: the connection cannot go on.
    case compression
    /// The fields are no reply.
    case malformed
    /// The fields have more bytes than the limit.
    case tooLarge
  }

  /// Owned; nghttp2's decoder for the blocks that are read whole.
  private let inflater: OpaquePointer

  init?() {
    var inflater: OpaquePointer?
    guard nghttp2_hd_inflate_new(&inflater) == 0, let inflater else { return nil }
    self.inflater = inflater
    nghttp2_hd_inflate_change_table_size(inflater, 0)
    // It would insist on the announcement of the new size, which a peer without a table may leave out.
    let announcement: [UInt8] = [0x20]
    guard (try? announcement.withUnsafeBufferPointer { try inflate($0) { _, _ in } }) != nil else {
      return nil
    }
  }

  deinit { nghttp2_hd_inflate_del(inflater) }

  /// - Parameters:
  ///   - limit: Of the bytes of all names and values.
  ///   - keep: Called with each wanted header.
  /// - Returns: The status.
  func status(
    of block: UnsafeBufferPointer<UInt8>, wanted: [WantedHeader], limit: Int,
    keep: (Int, UnsafeBufferPointer<UInt8>) -> Void
  ) throws(Failure) -> UInt16 {
    if let status = Self.plainStatus(of: block, wanted: wanted, limit: limit) { return status }
    var (status, size, isMalformed, hasFields): (UInt16, Int, Bool, Bool) = (0, 0, false, false)
    try inflate(block) { name, value in
      size += name.count + value.count
      if name.first == UInt8(ascii: ":") {
        guard status == 0, !hasFields, name.elementsEqual(":status".utf8),
          let number = Self.number(value)
        else {
          isMalformed = true
          return
        }
        status = number
      } else {
        hasFields = true
        if name.contains(where: { (0x41...0x5A).contains($0) }) { isMalformed = true }
        if size <= limit, let index = wanted.firstIndex(where: { $0.name.elementsEqual(name) }) {
          keep(index, value)
        }
      }
    }
    guard size <= limit else { throw .tooLarge }
    guard !isMalformed, status != 0 else { throw .malformed }
    return status
  }

  private static func number(_ text: UnsafeBufferPointer<UInt8>) -> UInt16? {
    guard text.count == 3, text.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return text.reduce(0) { $0 * 10 + UInt16($1 - 0x30) }
  }

  private func inflate(
    _ block: UnsafeBufferPointer<UInt8>,
    _ field: (UnsafeBufferPointer<UInt8>, UnsafeBufferPointer<UInt8>) -> Void
  ) throws(Failure) {
    var (at, left) = (block.baseAddress, block.count)
    while true {
      var pair = nghttp2_nv()
      var flags: Int32 = 0
      let used = nghttp2_hd_inflate_hd2(inflater, &pair, &flags, at, left, 1)
      guard used >= 0 else { throw .compression }
      at = at.map { $0 + used }
      left -= used
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
        field(
          UnsafeBufferPointer(start: pair.name, count: pair.namelen),
          UnsafeBufferPointer(start: pair.value, count: pair.valuelen))
      }
      if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 { break }
      if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) == 0, left == 0 { throw .compression }
    }
    nghttp2_hd_inflate_end_headers(inflater)
  }

  // MARK: Blocks of which only the status matters

  /// The status of a reply that has it in one byte, as all that are common, and no wanted header;
  /// `nil` for any other, and for one that is not as it must be.
  private static func plainStatus(
    of block: UnsafeBufferPointer<UInt8>, wanted: [WantedHeader], limit: Int
  ) -> UInt16? {
    var reader = Reader(rest: block[...])
    var status: UInt16 = 0
    // A byte of Huffman code is less than two characters.
    guard block.count * 2 <= limit else { return nil }
    while let first = reader.rest.first {
      if first & 0x80 != 0 {
        guard let index = reader.integer(prefix: 7), index <= StaticTable.count else { return nil }
        if (8...14).contains(index) {
          guard status == 0 else { return nil }
          status = statuses[index - 8]
        } else if index < 8 || wanted.contains(where: { $0.index == index }) {
          return nil
        }
      } else if first & 0xE0 == 0x20 {
        guard reader.integer(prefix: 5) == 0, status == 0 else { return nil }
      } else {
        guard let index = reader.integer(prefix: first & 0x40 != 0 ? 6 : 4) else { return nil }
        if index == 0 {
          guard let name = reader.string(), name.bytes.first != UInt8(ascii: ":") else {
            return nil
          }
          let isWanted = wanted.contains { header in
            name.isCoded
              ? header.mayHaveCodedLength(name.bytes.count) : header.name.elementsEqual(name.bytes)
          }
          if isWanted { return nil }
        } else if index <= 14 || index > StaticTable.count
          || wanted.contains(where: { $0.index == index })
        {
          return nil
        }
        guard status != 0, reader.string() != nil else { return nil }
      }
    }
    return status == 0 ? nil : status
  }

  /// The values of `:status` in the static table, from index 8.
  private static let statuses: [UInt16] = [200, 204, 206, 304, 400, 404, 500]

  private struct Reader {
    var rest: Slice<UnsafeBufferPointer<UInt8>>

    /// An integer with a prefix of so many bits; `nil` if it is cut short or beyond all reason.
    mutating func integer(prefix: Int) -> Int? {
      let most = UInt8(truncatingIfNeeded: 1 << prefix - 1)
      guard let first = rest.popFirst() else { return nil }
      guard first & most == most else { return Int(first & most) }
      var (value, shift) = (Int(most), 0)
      while let byte = rest.popFirst(), shift <= 21 {
        value += Int(byte & 0x7F) << shift
        if byte & 0x80 == 0 { return value }
        shift += 7
      }
      return nil
    }

    mutating func string() -> (bytes: Slice<UnsafeBufferPointer<UInt8>>, isCoded: Bool)? {
      guard let first = rest.first, let count = integer(prefix: 7), count <= rest.count else {
        return nil
      }
      defer { rest = rest.dropFirst(count) }
      return (rest.prefix(count), first & 0x80 != 0)
    }
  }
}

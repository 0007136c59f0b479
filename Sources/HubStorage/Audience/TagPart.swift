import HubCore

/// The members of a tag among the 65 536 registration numbers of one part: a row of `tag_part`.
///
/// In the file it is a byte that tells the form, then either runs (the gap since the last, the
/// length less one, as variable-length integers) or a bit for each number, whichever is shorter.
struct TagPart {
  static let width: UInt32 = 1 << 16

  private enum Form: UInt8 {
    case runs = 0
    case bits = 1
  }

  private static let wordCount = Int(width) / 64
  private static let damaged = StoreError.corrupt("the members of a tag cannot be read")
  private var words = [UInt64](repeating: 0, count: wordCount)
  /// Words outside this range are 0. A new tag has one member, and scanning all words takes long.
  private var used = 0..<0
  private(set) var count = 0

  init() {}

  /// - Throws: ``StoreError/corrupt(_:)``. No input traps.
  init(_ bytes: [UInt8]) throws(StoreError) {
    var reader = ByteReader(bytes)
    guard let form = Form(rawValue: try reader.byte()) else { throw Self.damaged }
    switch form {
    case .runs:
      var position: UInt64 = 0
      while !reader.isAtEnd {
        let gap = try reader.number()
        let more = try reader.number()
        guard gap < UInt64(Self.width), more < UInt64(Self.width),
          position + gap + more < UInt64(Self.width)
        else { throw Self.damaged }
        for number in position + gap...position + gap + more { insert(UInt16(number)) }
        position += gap + more + 1
      }
    case .bits:
      guard bytes.count == 1 + Self.wordCount * 8 else { throw Self.damaged }
      for index in words.indices {
        for byte in 0..<8 {
          words[index] |= UInt64(bytes[1 + index * 8 + byte]) << UInt64(byte * 8)
        }
        count += words[index].nonzeroBitCount
      }
      used = words.indices
    }
  }

  /// - Returns: `nil` when there is no member.
  var bytes: [UInt8]? {
    guard count > 0 else { return nil }
    var writer = ByteWriter()
    writer.write(Form.runs.rawValue)
    var position = 0
    while let start = next(from: position, isMember: true) {
      let end = next(from: start, isMember: false) ?? Int(Self.width)
      writer.write(UInt64(start - position))
      writer.write(UInt64(end - start - 1))
      position = end
      guard writer.bytes.count <= Self.wordCount * 8 else { return bits }
    }
    return writer.bytes
  }

  private var bits: [UInt8] {
    var bytes: [UInt8] = [Form.bits.rawValue]
    bytes.reserveCapacity(1 + words.count * 8)
    for word in words {
      for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(byte * 8))) }
    }
    return bytes
  }

  mutating func insert(_ number: UInt16) {
    let (word, bit) = (Int(number >> 6), UInt64(1) << UInt64(number & 63))
    guard words[word] & bit == 0 else { return }
    words[word] |= bit
    count += 1
    used =
      used.isEmpty
      ? word..<word + 1 : min(used.lowerBound, word)..<max(used.upperBound, word + 1)
  }

  mutating func remove(_ number: UInt16) {
    let (word, bit) = (Int(number >> 6), UInt64(1) << UInt64(number & 63))
    guard words[word] & bit != 0 else { return }
    words[word] &= ~bit
    count -= 1
  }

  mutating func apply(_ change: TagChange) {
    let number = UInt16(truncatingIfNeeded: change.registration)
    if change.isMember { insert(number) } else { remove(number) }
  }

  /// The members stored in a row, in rising order.
  static func members(in bytes: [UInt8], of part: Int64) throws(StoreError) -> [UInt32] {
    guard let part = UInt16(exactly: part) else { throw damaged }
    return try TagPart(bytes).members(of: UInt32(part))
  }

  /// The members of the part with this number, in rising order.
  func members(of part: UInt32) -> [UInt32] {
    var members: [UInt32] = []
    members.reserveCapacity(count)
    for index in used {
      var rest = words[index]
      while rest != 0 {
        members.append(part << 16 | UInt32(index << 6 | rest.trailingZeroBitCount))
        rest &= rest - 1
      }
    }
    return members
  }

  /// The first number from `position` on that is, or is not, a member.
  private func next(from position: Int, isMember: Bool) -> Int? {
    let end = isMember ? used.upperBound : words.count
    let first = isMember ? max(position, used.lowerBound << 6) : position
    var index = first >> 6
    guard index < end else { return nil }
    let flip: UInt64 = isMember ? 0 : .max
    var word = (words[index] ^ flip) & (.max << UInt64(first & 63))
    while word == 0 {
      index += 1
      guard index < end else { return nil }
      word = words[index] ^ flip
    }
    return index << 6 | word.trailingZeroBitCount
  }
}

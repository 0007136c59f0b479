import HubCore
import Testing

@Suite("Ids of registrations")
struct RegistrationIDCodingTests {
  static let coding = RegistrationIDCoding(key: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908))

  @Test("an id gives its number back, in its hub only")
  func roundTrip() {
    var ids: Set<String> = []
    for number in [1, 2, 3, 1_000_000, Int64(UInt32.max)] + Array(100...200) {
      let id = Self.coding.id(of: number, hub: 7)
      #expect(Self.coding.number(in: id, hub: 7) == number)
      #expect(Self.coding.number(in: id, hub: 8) == nil)
      #expect(RegistrationIDCoding(key: (1, 2)).number(in: id, hub: 7) == nil)
      ids.insert(id)
    }
    #expect(ids.count == 106)
  }

  @Test("the keyed hash is SipHash-2-4 of two words, as its authors' code gives it")
  func vector() {
    // The test key 00 01 … 0f of the paper; hub and number make the 16 bytes of the message.
    let id = Self.coding.id(of: 0x0f0e_0d0c_0b0a_0908 & .max, hub: 0x0706_0504_0302_0100)
    #expect(id.split(separator: "-")[1] == "\(0x3f2a_cc7f_57c2_9bdb as UInt64)")
  }

  @Test("the keyed hash of bytes is SipHash-2-4, as its authors' code gives it")
  func bytes() {
    let key: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
    let hashes: [Int: UInt64] = [
      0: 0x726f_db47_dd0e_0e31, 1: 0x74f8_39c5_93dc_67fd, 8: 0x93f5_f579_9a93_2462,
      15: 0xa129_ca61_49be_45e5,
    ]
    for (count, expected) in hashes {
      var hash = SipHash(key: key)
      #expect(hash.finish(with: (0..<count).map { UInt8($0) }) == expected, "\(count) bytes")
    }
  }

  @Test(
    "any other text is nobody's number",
    arguments: [
      "", "-", "1-2-3", "123-234-1", "1-2-3-4", "--", "a-b-c", "18446744073709551616-1-1",
      "9223372036854775807-9223372036854775807-1", "2372532420827572008-85883004107185159-4",
    ])
  func foreign(id: String) {
    #expect(Self.coding.number(in: id, hub: 7) == nil)
    let own = Self.coding.id(of: 5, hub: 7)
    for changed in ["0" + own, own + " ", own + "1", "+" + own, String(own.dropLast())] {
      #expect(Self.coding.number(in: changed, hub: 7) == nil)
    }
  }
}

import Foundation
import Testing
import Wire

@testable import NotificationHubs

@Suite("Filters, etags and continuation tokens")
struct RegistrationQueryTests {
  static let subscription = PushChannel.subscription(
    endpoint: "https://push.example/a b", p256dh: "p+/=", auth: "a")
  static let baidu = PushChannel.baidu(userID: "u-1", channelID: "c-2")

  @Test(
    "the filter for a handle finds it, whatever it consists of",
    arguments: ["it's", "'", "''", "a'\u{5AF}b", "e' and 'f", "100%25-a-b", "%27"])
  func ownFilter(handle: String) throws {
    let filter = try RegistrationFilter(parsing: RegistrationFilter.text(.handle(handle)))
    #expect(filter.matches(platform: .gcm, channel: .handle(handle)))
  }

  @Test(
    "every form of a filter selects its device and no other",
    arguments: [
      ("ChannelUri eq '0a1B'", PushPlatform.apns, PushChannel.handle("0A1B")),
      ("ChannelUri eq 'https://some.url/'", .wns, .handle("https://some.url/")),
      (
        "channeluri EQ 'amzn1.adm-registration.v2.123'", .gcm,
        .handle("amzn1.adm-registration.v2.123")
      ),
      ("ChannelUri+eq+%27it%27%27s%27", .adm, .handle("it's")),
      ("  ChannelUri  eq  'it''s'  ", .adm, .handle("it's")),
      ("deviceToken+eq+'0A1B'", .apns, .handle("0A1B")),
      ("DeviceToken eq '0a1b'", .apns, .handle("0A1B")),
      ("GcmRegistrationId eq 'g+1'", .gcm, .handle("g+1")),
      ("FcmV1RegistrationId eq 'f:1'", .fcmv1, .handle("f:1")),
      ("AdmRegistrationId%20eq%20'a'", .adm, .handle("a")),
      ("XiaomiRegistrationId eq 'x%2F1'", .xiaomi, .handle("x/1")),
      ("BaiduChannelId eq 'c-2' and BaiduUserId eq 'u-1'", .baidu, baidu),
      ("BaiduUserId eq 'u-1' and BaiduChannelId eq 'c-2'", .baidu, baidu),
      ("BaiduChannelId eq c-2' and BaiduUserId eq 'u-1'", .baidu, baidu),
      ("ChannelUri eq 'u-1-c-2'", .baidu, baidu),
      ("ChannelUri eq 'u-c'", .baidu, .handle("u-c")),
      (
        "Endpoint eq 'https://push.example/a b' and P256DH eq 'p+/=' and Auth eq 'a'", .browser,
        subscription
      ),
      (
        "Endpoint eq 'https%3A%2F%2Fpush.example%2Fa%20b' and P256DH eq 'p%2B%2F%3D' and Auth eq 'a'",
        .browser, subscription
      ),
      ("ChannelUri eq 'https://push.example/a b'", .browser, subscription),
    ])
  func filters(text: String, platform: PushPlatform, channel: PushChannel) throws {
    let filter = try RegistrationFilter(parsing: text)
    #expect(filter.handles.contains(channel.handle))
    #expect(filter.handles.count <= 10)
    #expect(filter.matches(platform: platform, channel: channel))
    #expect(!filter.matches(platform: platform, channel: .handle("other")))
    let other: PushPlatform = platform == .mpns ? .wns : .mpns
    #expect(filter.matches(platform: other, channel: channel) == (filter.platform == nil))
  }

  @Test("a subscription with other keys is another device")
  func otherKeys() throws {
    let filter = try RegistrationFilter(parsing: RegistrationFilter.text(Self.subscription))
    #expect(filter.matches(platform: .browser, channel: Self.subscription))
    let other = PushChannel.subscription(
      endpoint: Self.subscription.handle, p256dh: "other", auth: "a")
    #expect(!filter.matches(platform: .browser, channel: other))
  }

  @Test(
    "other filters are refused",
    arguments: [
      "", "ChannelUri", "ChannelUri eq", "ChannelUri eq 'a", "ChannelUri eq a", "ChannelUri eq ''",
      "ChannelUri ne 'a'", "ChannelUri eq 'a' and", "ChannelUri eq 'a' or DeviceToken eq 'b'",
      "ChannelUri eq 'a' and ChannelUri eq 'b'", "Tags eq 'a'", "Endpoint eq 'a'",
      "BaiduUserId eq 'u'", "BaiduUserId eq u' and BaiduChannelId eq 'c'", "Auth eq 'a' and",
      "DeviceToken eq 'a' and ChannelUri eq 'b'", "ChannelUri eq 'a' x", "ChannelUri eq 1",
      "ChannelUri eq '\(String(repeating: "a", count: 20_000))'",
    ])
  func refusedFilters(text: String) {
    #expect(throws: WireFormatError.self) { try RegistrationFilter(parsing: text) }
  }

  @Test(
    "If-Match is read in every form",
    arguments: [
      (nil, ETagCondition.none), ("*", .any), (" * ", .any), ("\"2\"", .tag("2")),
      ("W/\"2\"", .tag("2")), ("2", .tag("2")), ("\"abc\"", .tag("abc")), ("W/2", .tag("2")),
    ])
  func conditions(header: String?, expected: ETagCondition) throws {
    #expect(try ETagCondition(ifMatch: header) == expected)
  }

  @Test(
    "an If-Match in no known form is refused",
    arguments: ["", "\"\"", "abc", "\"1", "1\"", "\"1\",\"2\"", "W/", "**", "\"a\"b\""])
  func wrongConditions(header: String) {
    #expect(throws: WireFormatError(ETagCondition.fault)) { try ETagCondition(ifMatch: header) }
  }

  @Test("conditions hold for their etag only")
  func holding() {
    #expect(ETagCondition.none.holds(for: "1") && ETagCondition.any.holds(for: "1"))
    #expect(ETagCondition.tag("1").holds(for: "1") && !ETagCondition.tag("1").holds(for: "2"))
    #expect(ETagCondition.weak("2") == "W/\"2\"")
  }

  @Test("tokens survive any number of encodings", arguments: [0, 1, 3, 4, 5, 100])
  func tokens(length: Int) {
    let position = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 251) }
    let token = ContinuationToken.encode(position)
    #expect(token == token.percentEncoded)
    guard length > 0 else { return }
    for text in [token, token.percentEncoded, token + "%3D", token + "%253D%253D"] {
      #expect(ContinuationToken.decode(text) == position)
    }
  }

  @Test(
    "foreign tokens are refused", arguments: ["", "%", "a", "a!b", "é", "=", "%25%25", "a b c"])
  func foreignTokens(text: String) {
    #expect(ContinuationToken.decode(text) == nil)
  }

  @Test("the address of the next page repeats the query, dollar signs encoded")
  func nextPage() {
    let address = AtomAddress(
      "https://h/hub/registrations/?api-version=2020-06&$top=2&%24filter=a+eq+%27b%27&test"
        + "&ContinuationToken=old")
    #expect(
      address.next(token: "a%3D")
        == "https://h/hub/registrations?api-version=2020-06&%24top=2&%24filter=a+eq+%27b%27&test"
        + "&continuationtoken=a%253D")
    #expect(
      address.appending("1 2").text.hasPrefix("https://h/hub/registrations/1%202?api-version="))
    #expect(address.root("x").text.hasPrefix("https://h/x?api"))
    #expect(AtomAddress("https://h").root("x").text == "https://h/x")
    #expect(AtomAddress("https://h/a?b").replacingLast(with: "c").text == "https://h/c?b")
  }
}

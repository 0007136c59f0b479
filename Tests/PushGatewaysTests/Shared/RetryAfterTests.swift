import Testing

@testable import PushGateways

@Suite("Retry-After")
struct RetryAfterTests {
  @Test("it reads as the vectors say", arguments: APNsFixture.all.retryAfter.cases)
  func vectors(example: APNsFixture.Pauses.Case) {
    let seconds = RetryAfter.seconds(example.value, now: APNsFixture.all.retryAfter.now)
    switch example.seconds {
    case .exactly(let expected)?: #expect(seconds == expected)
    case .cap?: #expect(seconds == .max)
    case nil: #expect(seconds == nil)
    }
  }

  @Test(
    "dates around leap days and centuries come out right",
    arguments: [
      ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
      ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
      ("Sun, 31 Dec 2023 23:59:59 GMT", 1_704_067_199),
      ("Mon, 01 Jan 2024 00:00:00 GMT", 1_704_067_200),
      ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
    ] as [(String, Int64)])
  func dates(text: String, seconds: Int64) {
    #expect(RetryAfter.seconds(text, now: seconds - 7) == 7)
  }

  @Test(
    "what is no date is ignored",
    arguments: [
      "Tue, 14 Nov 2023 22:14:50", "Tue, 32 Nov 2023 22:14:50 GMT", "Tue, 14 Nov 2023 24:14:50 GMT",
      "Tue, 14 Nov 2023 22:14 GMT", "Tue 14 Nov 2023 22:14:50 GMT",
      "Tue, 14 November 2023 22:14:50 GMT",
    ])
  func badDates(text: String) { #expect(RetryAfter.seconds(text, now: 0) == nil) }
}

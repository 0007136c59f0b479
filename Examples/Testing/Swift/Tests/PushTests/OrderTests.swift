import Foundation
import Testing

/// The program under test is curl here; yours is started in the same way, or runs in the tests' own process.
@Suite(.serialized) struct OrderTests {
  /// Asks Apple's push service to show a text; returns the status of its answer.
  private func announce(_ text: String, to phone: Phone, by belfry: BelfryEmulator) throws -> Int {
    func part(_ json: String) -> String {
      Data(json.utf8).base64EncodedString().replacingOccurrences(of: "=", with: "")
    }
    let now = Int(Date().timeIntervalSince1970)
    // A token of the form that a key from Apple gives: the emulator cannot know its signature.
    let token = [
      part(#"{"alg":"ES256","kid":"ABCDE12345"}"#), part(#"{"iss":"TEAM123456","iat":\#(now)}"#),
      String(repeating: "A", count: 86),
    ].joined(separator: ".")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [
      "curl", "-sS", "--http2", "https://api.push.apple.com/3/device/\(phone.token)", "-o",
      "/dev/null",
      "-H", "authorization: bearer \(token)", "-H", "apns-topic: com.example.shop", "-H",
      "apns-push-type: alert",
      "-d", #"{"aps":{"alert":"\#(text)"}}"#, "-w", "%{http_code}",
    ]
    process.environment = ProcessInfo.processInfo.environment.merging(belfry.environment) { $1 }
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    process.waitUntilExit()
    return Int(String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self))
      ?? 0
  }

  @Test("the customer is told")
  func told() async throws {
    let belfry = try BelfryEmulator()
    defer { belfry.stop() }
    let phone = try await belfry.iPhone("com.example.shop")
    #expect(try announce("Tea is on its way", to: phone, by: belfry) == 200)
    try await phone.expect("Tea is on its way")
  }

  @Test("a phone without the app is noticed")
  func uninstalled() async throws {
    let belfry = try BelfryEmulator()
    defer { belfry.stop() }
    let phone = try await belfry.iPhone("com.example.shop")
    try await phone.uninstall()
    #expect(try announce("Tea", to: phone, by: belfry) == 410)
    #expect(try await phone.messages().isEmpty)
  }
}

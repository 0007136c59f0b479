import Foundation
import Testing

@testable import belfry

@Suite("belfry.example.json")
struct ExampleConfigurationTests {
  private static let file = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "belfry.example.json").path

  @Test("shows every setting, with its default")
  func complete() throws {
    let text = try String(contentsOfFile: Self.file, encoding: .utf8)
    let root = try ConfigurationParser.parse(text, file: Self.file)
    guard case .object(let members) = root.value else {
      Issue.record("not an object")
      return
    }
    #expect(text == ExampleConfiguration.text + "\n", "script/settings writes it")
    #expect(members.map(\.name) == Setting.all.map(\.key) + ["hubs"])
    let example = try Configuration(file: Self.file, environment: [:])
    for setting in Setting.all where setting.key != Setting.data.key {
      #expect(example.list(setting) == (setting.standard.map { [$0] } ?? []), "\(setting.key)")
    }
  }

  @Test("relative paths in a file start at the file, those of authorities too")
  func relativePaths() throws {
    let scratch = try Scratch()
    let file = try scratch.file(
      "belfry.json",
      """
      {"data": "data", "tlsCertificate": "chain.pem", "tlsKey": "/etc/key.pem",
       "trust": ["ca.pem", "/etc/ca.pem"]}
      """)
    let configuration = try Configuration(file: file, environment: [:])
    #expect(configuration.text(.data) == scratch.path + "/data")
    #expect(configuration.text(.tlsCertificate) == scratch.path + "/chain.pem")
    #expect(configuration.text(.tlsKey) == "/etc/key.pem")
    #expect(configuration.list(.trust) == [scratch.path + "/ca.pem", "/etc/ca.pem"])
  }
}

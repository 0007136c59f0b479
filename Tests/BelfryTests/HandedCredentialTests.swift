import Foundation
import Testing

@testable import belfry

@Suite("Settings that the service manager hands over as credentials")
struct HandedCredentialTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func configuration(_ more: [String: String] = [:]) throws -> Configuration {
    let file = try scratch.file("belfry.json", #"{"metricsToken":"of-the-file","port":1}"#)
    return try Configuration(
      file: file, environment: ["CREDENTIALS_DIRECTORY": scratch.path].merging(more) { $1 })
  }

  @Test("count before the file and behind variables, without the line end")
  func order() throws {
    _ = try scratch.file("belfry.metricsToken", "of-the-manager\n")
    #expect(try configuration().text(.metricsToken) == "of-the-manager")
    #expect(try configuration().integer(.port) == 1)
    #expect(
      try configuration(["BELFRY_METRICS_TOKEN": "of-the-variable"]).text(.metricsToken)
        == "of-the-variable")
  }

  @Test("are checked as in the file, and a fault names theirs")
  func fault() throws {
    let file = try scratch.file("belfry.port", "many\n")
    #expect {
      _ = try configuration()
    } throws: {
      "\($0)".contains(file) && "\($0)".contains("'port' must be")
    }
  }

  @Test("and others of the directory are let be")
  func others() throws {
    _ = try scratch.file("belfry.unknown", "x")
    _ = try scratch.file("port", "7")
    #expect(try configuration().integer(.port) == 1)
  }
}

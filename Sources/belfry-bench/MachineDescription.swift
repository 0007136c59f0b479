import Foundation

/// The machine on which a figure was measured, without which it means little.
struct MachineDescription: Sendable, Encodable {
  var cpu: String
  var cores: Int
  var memoryGiB: Double
  var system: String
  /// The compiler version, as far as the program can tell.
  var swift: String
  var isOptimized: Bool

  static func current() -> MachineDescription {
    let process = ProcessInfo.processInfo
    return MachineDescription(
      cpu: cpuModel(), cores: process.activeProcessorCount,
      memoryGiB: (Double(process.physicalMemory) / Double(1 << 30) * 10).rounded() / 10,
      system: process.operatingSystemVersionString, swift: swiftVersion, isOptimized: isOptimized)
  }

  var line: String {
    let build = isOptimized ? "release build" : "DEBUG BUILD, figures mean nothing"
    return "\(cpu), \(cores) cores, \(memoryGiB.shortest) GiB, \(system), Swift \(swift), \(build)"
  }

  private static func cpuModel() -> String {
    #if canImport(Darwin)
      var size = 0
      sysctlbyname("machdep.cpu.brand_string", nil, &size, nil, 0)
      var bytes = [CChar](repeating: 0, count: size + 1)
      sysctlbyname("machdep.cpu.brand_string", &bytes, &size, nil, 0)
      return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    #else
      let text = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? ""
      func value(_ name: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + "\t") }
        return line?.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
      }
      // The names of virtual machines' processors often leave out the generation.
      let number = [("family", value("cpu family")), ("model", value("model"))]
        .compactMap { name, number in number.map { ", \(name) \($0)" } }
      return (value("model name") ?? "unknown CPU") + number.joined()
    #endif
  }

  private static var swiftVersion: String {
    #if compiler(>=6.4)
      "6.4 or newer"
    #elseif compiler(>=6.3)
      "6.3"
    #elseif compiler(>=6.2)
      "6.2"
    #else
      "6.1"
    #endif
  }

  private static var isOptimized: Bool {
    var result = true
    assert(
      {
        result = false
        return true
      }())
    return result
  }
}

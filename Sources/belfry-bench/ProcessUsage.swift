import Foundation
import HubServer

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The resource usage of this process so far.
struct ProcessUsage {
  /// The user and system time of all threads, in seconds.
  var cpuSeconds: Double
  /// The peak resident memory, in megabytes (10⁶ bytes).
  var peakMB: Double

  static func current() -> ProcessUsage {
    var usage = rusage()
    getrusage(0, &usage)  // RUSAGE_SELF: a macro, an enum or an Int32, by platform
    let seconds = Double(usage.ru_utime.tv_sec) + Double(usage.ru_stime.tv_sec)
    let micros = Double(usage.ru_utime.tv_usec) + Double(usage.ru_stime.tv_usec)
    #if canImport(Darwin)
      let peak = Double(usage.ru_maxrss) / 1e6  // bytes
    #else
      // Not `ru_maxrss`, which starts with the value of the parent at the time it started this
      // process.
      let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
      let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
      let kibibytes = line?.split(separator: " ").lazy.compactMap { Double($0) }.first
      let peak = (kibibytes ?? 0) * 1024 / 1e6
    #endif
    return ProcessUsage(cpuSeconds: seconds + micros * 1e-6, peakMB: peak)
  }

  /// The resident memory now, in megabytes; 0 if the system does not report it.
  static var residentMB: Double { Double(ProcessMemory.resident ?? 0) / 1e6 }
}

# Revenue per region from orders.csv: order,date,region,item,quantity,unit_price
BEGIN { FS = "," }

NR > 1 {
    orders[$3]++
    revenue[$3] += $4 * $6
}

END {
    printf "%-8s %6s %10s\n", "region", "orders", "revenue"
    count = split("east north south west", regions, " ")
    for (i = 1; i <= count; i++) {
        region = regions[i]
        printf "%-8s %6d %10.2f\n", region, orders[region], revenue[region]
        total += revenue[region]
    }
    printf "%-8s %6d %10.2f\n", "total", NR - 1, total
}
